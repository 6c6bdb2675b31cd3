/*
 * Reading "key:value,key:value" as PyTorch does: blanks around words do not count, the last of
 * equal keys does. See alloc_conf.h.
 */
#include "report/judge/alloc_conf.h"
#include <string.h>

/* Commas inside brackets belong to a value: "roundup_power2_divisions:[256:1,512:2]". */
static size_t item_length(const char *text)
{
	size_t length = 0;
	int depth = 0;

	for (; text[length] && (depth > 0 || text[length] != ','); length++)
		depth += (text[length] == '[') - (text[length] == ']');
	return length;
}

const char *gm_torch_setting(struct gm_doc *doc, const char *key)
{
	const char *item = doc->allocator_settings, *found = NULL;
	size_t key_length = strlen(key);

	while (item && *item) {
		size_t length = item_length(item), blanks = strspn(item, " \t");
		const char *value = item + blanks + key_length, *end = item + length;

		if (blanks + key_length < length && strncmp(item + blanks, key, key_length) == 0 &&
		    *(value += strspn(value, " \t")) == ':') {
			value += 1 + strspn(value + 1, " \t");
			while (end > value && strchr(" \t", end[-1]))
				end--;
			found = gm_zone_strndup(&doc->zone, value, (size_t)(end - value));
		}
		item = item[length] ? item + length + 1 : NULL;
	}
	return found;
}

bool gm_torch_enabled(struct gm_doc *doc, const char *key)
{
	const char *value = gm_torch_setting(doc, key);

	return value && strcmp(value, "True") == 0;
}

const char *gm_torch_conf_name(struct gm_doc *doc)
{
	const char *environment = gm_reader_string(doc->reader, doc->header->environment_string);

	if (gm_doc_variable(doc, environment, "PYTORCH_ALLOC_CONF") &&
	    !gm_doc_variable(doc, environment, "PYTORCH_CUDA_ALLOC_CONF"))
		return "PYTORCH_ALLOC_CONF";
	return "PYTORCH_CUDA_ALLOC_CONF";
}

bool gm_torch_async_backend(struct gm_doc *doc)
{
	const char *backend = gm_torch_setting(doc, "backend");

	return backend && strcmp(backend, "cudaMallocAsync") == 0;
}
