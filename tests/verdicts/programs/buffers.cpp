/*
 * C++: buffers that own their memory, kept where C++ programs keep things: buffers NAME [END]. What
 * is freed by a destructor of main's objects, of a static object or by unwinding is freed after the
 * work.
 */
#include "gpu.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

namespace
{

class Buffer
{
      public:
	explicit Buffer(size_t bytes) : memory(device_memory(bytes))
	{
	}
	~Buffer()
	{
		cudaFree(memory);
	}
	Buffer(const Buffer &) = delete;
	Buffer &operator=(const Buffer &) = delete;

      private:
	void *memory;
};

using Owned = std::unique_ptr<Buffer>;

constexpr int steps = 240;

PLACE Owned make_result(size_t bytes = MIB)
{
	return Owned(new Buffer(bytes));
}

/* A vector of main's is destroyed at the end of main. */
PLACE void fill_results(std::vector<Owned> &results)
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(24 * MIB);
		results.push_back(make_result());
	}
}

void vector_of_main()
{
	std::vector<Owned> results;

	fill_results(results);
	end_program(); /* with "return" main's objects are destroyed now */
	end_name = "return";
}

/* A cache without a limit is a static object. */
std::map<int, Owned> cache;

PLACE void remember_result(int key)
{
	cache[key] = make_result();
}

void static_map()
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(24 * MIB);
		remember_result(i);
	}
}

/* An object that lives as long as main owns the history of its jobs. */
class Server
{
      public:
	PLACE void handle_job()
	{
		clean_step(24 * MIB);
		history.push_back(make_result());
	}

      private:
	std::vector<Owned> history;
};

void member_history()
{
	Server server;

	for (volatile int i = 0; i < steps; i++)
		server.handle_job();
}

/* Two nodes hold each other by shared pointers, once per step. */
struct Node {
	Buffer data{MIB};
	std::shared_ptr<Node> other;
};

PLACE void connect_nodes()
{
	auto first = std::make_shared<Node>(), second = std::make_shared<Node>();

	first->other = second;
	second->other = first;
}

void shared_cycle()
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(24 * MIB);
		connect_nodes();
	}
}

/* The vector of results is destroyed by an exception that main catches. */
PLACE void fill_and_throw()
{
	std::vector<Owned> results;

	fill_results(results);
	throw std::runtime_error("the data set ended in the middle of a record");
}

void caught_by_main()
{
	try {
		fill_and_throw();
	} catch (const std::exception &error) {
		std::fprintf(stderr, "%s\n", error.what());
		std::exit(1);
	}
}

void uncaught()
{
	fill_and_throw();
}

/* A function's static vector: destroyed among the static objects. */
PLACE void log_sample()
{
	static std::vector<Owned> samples;

	samples.push_back(make_result(512 * KIB));
}

void function_static()
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(24 * MIB);
		log_sample();
	}
}

/* A growing array on the device, as thrust's and others': it is replaced by one twice as large when
 * it is full. */
class DeviceArray
{
      public:
	void push(size_t bytes)
	{
		used += bytes;
		if (used > capacity)
			reserve(2 * used);
	}

      private:
	PLACE void reserve(size_t bytes)
	{
		Owned larger(new Buffer(bytes));

		work(STEP_LAUNCHES);
		data = std::move(larger);
		capacity = bytes;
	}

	Owned data;
	size_t used = 0, capacity = 0;
};

void growing_array()
{
	DeviceArray trajectory;

	for (volatile int i = 0; i < 4 * steps; i++) {
		trajectory.push(MIB);
		clean_step(8 * MIB);
	}
}

/* One template, 24 instances: each keeps a table. */
template <int size> PLACE void keep_table()
{
	static std::vector<Owned> tables;

	tables.push_back(make_result(static_cast<size_t>(size) * 4 * KIB));
}

template <int... sizes>
PLACE void run_instances(unsigned which, std::integer_sequence<int, sizes...>)
{
	void (*const instances[])() = {keep_table<sizes + 1>...};

	instances[which]();
}

void templates()
{
	for (volatile int i = 0; i < 6 * steps; i++) {
		clean_step(8 * MIB);
		run_instances(noise(24), std::make_integer_sequence<int, 24>());
	}
}

/* ---- nothing wrong ---- */

/* A fixed number of buffers in a vector of main's; steps are clean. */
void fixed_vector()
{
	std::vector<Owned> weights;

	for (volatile int i = 0; i < 24; i++)
		weights.push_back(make_result(8 * MIB));
	for (volatile int i = 0; i < steps; i++)
		clean_step(64 * MIB);
}

/* The vector reaches its size in the first tenth of the run, by doubling. */
void array_of_known_size()
{
	DeviceArray particles;

	for (volatile int i = 0; i < 4 * steps; i++) {
		if (i < 90)
			particles.push(MIB);
		clean_step(8 * MIB);
	}
}

/* Objects of each step are destroyed in it, in another order than they were made. */
void shuffled_lives()
{
	for (volatile int i = 0; i < steps; i++) {
		std::vector<Owned> all;

		for (volatile int k = 0; k < 8; k++)
			all.push_back(make_result(4 * MIB));
		work(STEP_LAUNCHES);
		while (!all.empty()) {
			std::swap(all[noise(static_cast<unsigned>(all.size()))], all.back());
			all.pop_back();
		}
	}
}

/* An exception ends a healthy run in the middle of a step; its objects are destroyed. */
PLACE void step_that_throws(int step)
{
	Buffer activations(96 * MIB);

	work(STEP_LAUNCHES);
	if (step == steps / 2)
		throw std::runtime_error("a worker is gone");
}

void healthy_and_thrown()
{
	std::vector<Owned> weights;

	for (volatile int i = 0; i < 24; i++)
		weights.push_back(make_result(8 * MIB));
	try {
		for (volatile int i = 0; i < steps; i++)
			step_that_throws(i);
	} catch (const std::exception &) {
		std::exit(1);
	}
}

const behaviour behaviours[] = {
	{"vector-of-main", vector_of_main},
	{"static-map", static_map},
	{"member-history", member_history},
	{"shared-cycle", shared_cycle},
	{"caught-by-main", caught_by_main},
	{"uncaught", uncaught},
	{"function-static", function_static},
	{"growing-array", growing_array},
	{"templates", templates},
	{"fixed-vector", fixed_vector},
	{"array-of-known-size", array_of_known_size},
	{"shuffled-lives", shuffled_lives},
	{"healthy-and-thrown", healthy_and_thrown},
};

} // namespace

BEHAVIOURS(behaviours)
