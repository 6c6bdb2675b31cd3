/*
 * C++: containers, smart pointers, closures and threads that own device memory: containers NAME
 * [END].
 */
#include "gpu.h"

#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace
{

struct Block {
	explicit Block(size_t bytes) : memory(device_memory(bytes))
	{
	}
	~Block()
	{
		cudaFree(memory);
	}
	Block(const Block &) = delete;
	Block &operator=(const Block &) = delete;

	void *memory;
};

constexpr int steps = 240;

PLACE std::shared_ptr<Block> make_block(size_t bytes = MIB)
{
	return std::make_shared<Block>(bytes);
}

/* Owns its memory by value: a container that gets longer copies each of its elements. */
struct Copied {
	explicit Copied(size_t bytes) : bytes(bytes), memory(device_memory(bytes))
	{
	}
	Copied(const Copied &other) : Copied(other.bytes)
	{
		MUST(cudaMemcpy(memory, other.memory, bytes, 3));
	}
	Copied &operator=(Copied other)
	{
		std::swap(bytes, other.bytes);
		std::swap(memory, other.memory);
		return *this;
	}
	~Copied()
	{
		cudaFree(memory);
	}

	size_t bytes;
	void *memory;
};

/* ---- what stays ---- */

PLACE void keep_sample(std::vector<Copied> &samples)
{
	samples.push_back(Copied(MIB));
}

/* A vector of values: whenever it is full, all of its elements are copied, and the old ones go. */
void copied_when_longer()
{
	std::vector<Copied> samples;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		keep_sample(samples);
	}
}

/* A deque is meant to hold the last 16 results; nobody pops. */
class Recorder
{
      public:
	PLACE void record()
	{
		recent.push_back(make_block());
	}

      private:
	std::deque<std::shared_ptr<Block>> recent;
};

void deque_without_pop()
{
	static Recorder recorder;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		recorder.record();
	}
}

/* Callbacks are stored as closures that hold their buffers. */
class Bus
{
      public:
	PLACE void subscribe()
	{
		auto block = make_block();

		listeners.push_back([block] { (void)block; });
	}

      private:
	std::vector<std::function<void()>> listeners;
};

void closures()
{
	Bus bus;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		bus.subscribe();
	}
}

/* A raw pointer is lost when the constructor throws after it was assigned. */
class Matrix
{
      public:
	PLACE explicit Matrix(int step) : values(device_memory(MIB))
	{
		if (step % 3 == 0)
			throw std::invalid_argument("not square");
	}
	~Matrix()
	{
		cudaFree(values);
	}

      private:
	void *values;
};

void throwing_constructor()
{
	for (volatile int i = 0; i < 2 * steps; i++) {
		clean_step(16 * MIB);
		try {
			Matrix matrix(i);

			work(1);
		} catch (const std::invalid_argument &) {
		}
	}
}

/* A class with a virtual method is deleted through a base without a virtual destructor: the part of
 * the derived class stays. */
struct Layer {
	int kind = 0;
};

struct Dense : Layer {
	PLACE Dense() : weights(device_memory(MIB))
	{
	}
	void *weights;
};

PLACE void release_layer(Layer *layer)
{
	free(layer);
}

void base_without_destructor()
{
	for (volatile int i = 0; i < steps; i++) {
		void *room = malloc(sizeof(Dense));

		clean_step(16 * MIB);
		release_layer(new (room) Dense());
	}
}

/* Tasks' futures are kept, and each future its result. */
PLACE void start_task(std::vector<std::future<std::shared_ptr<Block>>> &futures)
{
	futures.push_back(std::async(std::launch::deferred, [] { return make_block(); }));
	futures.back().wait();
}

void kept_futures()
{
	std::vector<std::future<std::shared_ptr<Block>>> futures;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		start_task(futures);
	}
}

/* A list of weak pointers is cleaned, but each object is also in a list of its own. */
struct Tracked : std::enable_shared_from_this<Tracked> {
	PLACE void pin()
	{
		self = shared_from_this();
		data = make_block();
	}
	std::shared_ptr<Tracked> self;
	std::shared_ptr<Block> data;
};

void holds_itself()
{
	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		std::make_shared<Tracked>()->pin();
	}
}

/* ---- what does not ---- */

/* The 24 entries used last are kept: list and map, as caches are written. */
class Cache
{
      public:
	void get(unsigned key)
	{
		auto found = index.find(key);

		if (found != index.end()) {
			order.splice(order.begin(), order, found->second);
			return;
		}
		order.emplace_front(key, make_block());
		index[key] = order.begin();
		if (order.size() > 24) {
			index.erase(order.back().first);
			order.pop_back();
		}
	}

      private:
	std::list<std::pair<unsigned, std::shared_ptr<Block>>> order;
	std::unordered_map<unsigned, decltype(order)::iterator> index;
};

void bounded_cache()
{
	Cache cache;

	for (volatile int i = 0; i < 2 * steps; i++) {
		clean_step(16 * MIB);
		cache.get(noise(8) ? noise(32) : noise(1000));
	}
}

/* A cache of weak pointers, and a window of 8 that are in use. */
void weak_cache()
{
	std::unordered_map<int, std::weak_ptr<Block>> cache;
	std::deque<std::shared_ptr<Block>> in_use;

	for (int i = 0; i < 2 * steps; i++) {
		auto block = make_block(2 * MIB);

		cache[i] = block;
		in_use.push_back(block);
		if (in_use.size() > 8)
			in_use.pop_front();
		clean_step(8 * MIB);
	}
}

/* A pointer is reset to a new object in each step. */
void reset_each_step()
{
	std::unique_ptr<Block> current;

	for (volatile int i = 0; i < 2 * steps; i++) {
		current.reset(new Block(32 * MIB));
		clean_step(8 * MIB);
	}
}

/* Requests wait in a priority queue, at most 12. */
void priorities()
{
	using Request = std::pair<unsigned, std::shared_ptr<Block>>;
	auto later = [](const Request &a, const Request &b) { return a.first < b.first; };
	std::priority_queue<Request, std::vector<Request>, decltype(later)> waiting(later);

	for (volatile int i = 0; i < 2 * steps; i++) {
		waiting.emplace(noise(1000), make_block());
		if (waiting.size() > 12 || (noise(2) && !waiting.empty()))
			waiting.pop();
		clean_step(8 * MIB);
	}
}

/* Workers of a pool have a workspace each, and futures are taken when they are ready. */
void futures_taken()
{
	for (volatile int i = 0; i < steps; i++) {
		auto future = std::async(std::launch::deferred, [] { return make_block(4 * MIB); });

		clean_step(8 * MIB);
		future.get();
	}
}

/* The oldest of 24 values goes from the front of a vector: the others are copied one place down. */
void copied_in_bounds()
{
	std::vector<Copied> samples;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		keep_sample(samples);
		if (samples.size() > 24)
			samples.erase(samples.begin());
	}
}

PLACE void demote(std::deque<Copied> &from, std::deque<Copied> &to)
{
	to.push_back(from.front());
	from.pop_front();
}

PLACE void use_tiers(std::deque<Copied> &fast, std::deque<Copied> &slow)
{
	fast.push_back(Copied(MIB));
	if (fast.size() > 16)
		demote(fast, slow);
	if (slow.size() > 48)
		slow.pop_front();
}

/* Entries go from a fast store to a slow one, which drops the oldest: both are full soon. */
void two_tiers()
{
	std::deque<Copied> fast, slow;

	for (volatile int i = 0; i < steps; i++) {
		clean_step(16 * MIB);
		use_tiers(fast, slow);
	}
}

const behaviour behaviours[] = {
	{"copied-when-longer", copied_when_longer},
	{"copied-in-bounds", copied_in_bounds},
	{"two-tiers", two_tiers},
	{"deque-without-pop", deque_without_pop},
	{"closures", closures},
	{"throwing-constructor", throwing_constructor},
	{"base-without-destructor", base_without_destructor},
	{"kept-futures", kept_futures},
	{"holds-itself", holds_itself},
	{"bounded-cache", bounded_cache},
	{"weak-cache", weak_cache},
	{"reset-each-step", reset_each_step},
	{"priorities", priorities},
	{"futures-taken", futures_taken},
};

} // namespace

BEHAVIOURS(behaviours)
