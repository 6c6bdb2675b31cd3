/*
 * What the simulated devices say of themselves: count, name, identity, attributes. They look like
 * an H100 whose processors are scaled with its memory.
 */
#include <stdio.h>
#include "drv.h"

#define DEVICE(dev)                                                                                \
	do {                                                                                       \
		if ((dev) < 0 || (dev) >= sim.devices)                                             \
			return CUDA_ERROR_INVALID_DEVICE;                                          \
	} while (0)

/* Attribute numbers are CUDA's; what is not listed is 0. */
static const struct {
	unsigned char attribute;
	int value;
} attributes[] = {
	{1, 1024},	{2, 1024},   {3, 1024},	       {4, 64},	    {5, 2147483647},  {6, 65535},
	{7, 65535},	{8, 49152},  {9, 65536},       {10, 32},    {11, 2147483647}, {12, 65536},
	{13, 1980000},	{14, 512},   {15, 1},	       {19, 1},	    {21, 131072},     {22, 131072},
	{23, 65536},	{24, 16384}, {25, 16384},      {26, 16384}, {27, 32768},      {28, 32768},
	{29, 2048},	{30, 512},   {31, 1},	       {32, 1},	    {36, 2619000},    {37, 5120},
	{38, 52428800}, {39, 2048},  {40, 3},	       {41, 1},	    {42, 32768},      {43, 2048},
	{51, 32},	{75, 9},     {76, 0},	       {78, 1},	    {79, 1},	      {80, 1},
	{81, 233472},	{82, 65536}, {83, 1},	       {88, 0},	    {89, 1},	      {90, 1},
	{91, 1},	{95, 1},     {97, 232448},     {98, 1},	    {99, 1},	      {102, 1},
	{103, 1},	{106, 32},   {109, 134213632}, {110, 0},    {111, 1024},      {113, 1},
	{115, 1},	{119, 1},    {120, 1},	       {122, 1},    {123, 1},	      {125, 1},
	{126, 4},	{129, 1},
};

CUresult cuDriverGetVersion(int *version)
{
	const char *gpusim_driver = getenv("GPUSIM_DRIVER");

	SIM_API(0);
	SIM_VALUE(version);
	*version = gpusim_driver ? atoi(gpusim_driver) : SIM_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(count);
	*count = sim.devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(dev);
	DEVICE(ordinal);
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(name && length > 0);
	DEVICE(dev);
	snprintf(name, (size_t)length, "Simulated GPU");
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(bytes);
	DEVICE(dev);
	*bytes = sim.dev[dev].total;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t wide;
	CUresult rc = cuDeviceTotalMem_v2(&wide, dev);

	if (rc == CUDA_SUCCESS)
		*bytes = wide > UINT32_MAX ? UINT32_MAX : (unsigned)wide;
	return rc;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(value && (int)attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
	DEVICE(dev);
	*value = 0;
	if (attribute == 16) { /* processors: 132 for 80 GiB */
		*value = (int)(sim.dev[dev].total * 132 / (80ull << 30));
		*value += *value == 0;
	} else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
		*value = dev + 1;
	} else if (attribute == 132) { /* multicast needs partners */
		*value = sim.devices > 1;
	}
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == (unsigned)attribute)
			*value = attributes[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(major && minor);
	DEVICE(dev);
	*major = 9;
	*minor = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(uuid);
	DEVICE(dev);
	memcpy(uuid->bytes, "gpusim-device-\0", 16);
	uuid->bytes[15] = (char)dev;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice dev)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(id && length >= 13);
	DEVICE(dev);
	snprintf(id, (size_t)length, "0000:%02X:00.0", dev + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	SIM_API(SIM_INIT);
	unsigned domain, bus;

	SIM_VALUE(dev && id);
	if (sscanf(id, "%x:%x:", &domain, &bus) != 2 && sscanf(id, "%x:", &bus) != 1)
		return CUDA_ERROR_INVALID_VALUE;
	DEVICE((int)bus - 1);
	*dev = (int)bus - 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(can);
	DEVICE(dev);
	DEVICE(peer);
	*can = dev != peer;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
				 CUdevice to)
{
	SIM_API(SIM_INIT);
	SIM_VALUE(value && from != to);
	DEVICE(from);
	DEVICE(to);
	*value = attribute != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK;
	return CUDA_SUCCESS;
}

/* --- for the simulated NVML, which asks the driver in its own process --- */

int gpusim_device_count(void);
int gpusim_device_memory(int dev, unsigned long long *total, unsigned long long *used,
			 unsigned long long *own);

int gpusim_device_count(void)
{
	const char *count = getenv("GPUSIM_DEVICES");

	return sim.inited ? sim.devices : count && *count ? atoi(count) : 1;
}

/* Other processes take more of the device. */
void gpusim_others_take(int dev, unsigned long long bytes);
void gpusim_others_take(int dev, unsigned long long bytes)
{
	pthread_mutex_lock(&sim.lock);
	if (sim_phys_take(dev, bytes) == CUDA_SUCCESS)
		sim.dev[dev].others += bytes;
	pthread_mutex_unlock(&sim.lock);
}

/* used: everybody's; own: this process's. 0, or -1 when there is no such device. */
int gpusim_device_memory(int dev, unsigned long long *total, unsigned long long *used,
			 unsigned long long *own)
{
	int rc = -1;

	pthread_mutex_lock(&sim.lock);
	if (!sim.inited && dev >= 0 && dev < gpusim_device_count()) {
		*total = sim_parse_size(getenv("GPUSIM_MEMORY"), 8ull << 30);
		*used = sim_parse_others(NULL, 0, NULL);
		*own = 0;
		rc = 0;
	} else if (dev >= 0 && dev < sim.devices) {
		*total = sim.dev[dev].total;
		*used = sim.dev[dev].used;
		*own = sim.dev[dev].used - sim.dev[dev].others - sim.dev[dev].unattributed;
		rc = 0;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}
