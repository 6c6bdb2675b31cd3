"""PyTorch's caching allocator as the rules of docs/whatif.md tell it, plain and slow.

A second implementation, which shares nothing with src/report/whatif: random_histories.py holds the two
together. It has one device and no private pools. New segments lie one behind the other.
"""
import bisect

MIB = 1 << 20
NO_LIMIT = 1 << 62
PAGES = {True: 2 * MIB, False: 20 * MIB}  # of expandable segments, by whether the pool is the small one


class OutOfMemory(Exception):
    pass


class Block:
    """Blocks of a segment are a list; state is free, used, unmapped or none (in no list of free blocks)."""

    def __init__(self, address, size, stream, small, base, expandable):
        self.address, self.size, self.stream, self.small = address, size, stream, small
        self.base, self.expandable = base, expandable
        self.previous = self.next = None
        self.state, self.born, self.requested = "none", 0, 0

    def alone(self):
        return not self.previous and not self.next

    def room(self):
        """The size that it can grow to."""
        return self.size + (self.next.size if self.next and self.next.state == "unmapped" else 0)


class Sorted(list):
    """Blocks by a key that no two of them share."""

    def __init__(self, key):
        super().__init__()
        self.key = key

    def add(self, block):
        bisect.insort(self, block, key=self.key)

    def take(self, block):
        at = bisect.bisect_left(self, self.key(block), key=self.key)
        assert self[at] is block
        del self[at]


class Allocator:
    def __init__(self, expandable=False, max_split=NO_LIMIT, rounding=20 * MIB, collect_from=0.0, divisions=0,
                 limit=NO_LIMIT, allowed=None, total=NO_LIMIT):
        self.expandable, self.max_split, self.rounding = expandable, max_split, rounding
        self.collect_from, self.divisions = collect_from, divisions
        self.limit, self.allowed, self.total = limit, allowed, total
        self.free, self.unmapped = {}, {}  # by (stream, small)
        self.searches = {True: 0, False: 0}
        self.reserved = self.reserved_peak = self.allocated = self.allocated_peak = 0
        self.retries = self.ooms = 0
        self.next_segment, self.next_range = 1 << 44, 1 << 45
        self.events = []  # (action, address, bytes, stream, operation)
        self.operation = 0

    # ---- lists ----

    def free_blocks(self, key):
        return self.free.setdefault(key, Sorted(lambda block: (block.size, block.address)))

    def unmapped_blocks(self, key):
        return self.unmapped.setdefault(key, Sorted(lambda block: block.address))

    def put(self, block, state="free"):
        block.state, block.born = state, self.searches[block.small]
        lists = self.free_blocks if state == "free" else self.unmapped_blocks
        lists((block.stream, block.small)).add(block)

    def take(self, block):
        lists = self.free_blocks if block.state == "free" else self.unmapped_blocks
        lists((block.stream, block.small)).take(block)
        block.state = "none"

    @staticmethod
    def split(block, size):
        """Cuts off what lies behind the first bytes; the rest is in no list."""
        rest = Block(block.address + size, block.size - size, block.stream, block.small, block.base,
                     block.expandable)
        rest.previous, rest.next = block, block.next
        if rest.next:
            rest.next.previous = rest
        block.next, block.size = rest, size
        return rest

    def merge(self, block, state):
        for other in (block.previous, block.next):
            if not other or other.state != state:
                continue
            self.take(other)
            block.size += other.size
            if other is block.previous:
                block.address, block.previous = other.address, other.previous
                if block.previous:
                    block.previous.next = block
            else:
                block.next = other.next
                if block.next:
                    block.next.previous = block

    # ---- the driver ----

    def log(self, action, address, size, stream):
        self.events.append((action, address, size, stream, self.operation))

    def grow(self, action, address, size, stream):
        self.reserved += size
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        self.log(action, address, size, stream)

    def release(self, block):
        self.take(block)
        self.reserved -= block.size
        self.log("segment_free", block.address, block.size, block.stream)

    def unmap(self, block):
        page = PAGES[block.small]
        low = block.base + -(-(block.address - block.base) // page) * page
        high = block.base + (block.address + block.size - block.base) // page * page
        if low >= high:
            return
        self.take(block)
        if low > block.address:
            before, block = block, self.split(block, low - block.address)
            self.put(before)
        if high < block.address + block.size:
            self.put(self.split(block, high - block.address))
        self.reserved -= block.size
        self.log("segment_unmap", block.address, block.size, block.stream)
        self.merge(block, "unmapped")
        if not block.alone():
            self.put(block, "unmapped")

    def empty_cache(self):
        for key in sorted(self.free, key=lambda key: (key[1], key[0])):
            blocks = list(self.free[key])
            for block in blocks:
                if not block.expandable and block.alone():
                    self.release(block)
            for block in blocks:
                if block.expandable and block.state == "free":
                    self.unmap(block)

    def release_available(self, key, size):
        if self.max_split == NO_LIMIT:
            return False
        wanted, released, blocks = max(size, self.max_split), 0, self.free_blocks(key)
        at = bisect.bisect_left(blocks, (wanted, 0), key=blocks.key)
        if at < len(blocks) and not blocks[at].expandable:
            self.release(blocks[at])
            return True
        while released < wanted and blocks and blocks[-1].size >= self.max_split and not blocks[-1].expandable:
            released += blocks[-1].size
            self.release(blocks[-1])
        return released >= wanted

    def collect_garbage(self):
        threshold, reclaimed = int(self.collect_from * self.allowed), 0
        target = self.reserved - threshold
        if target <= 0:
            return
        idle = [block for key in sorted(self.free) if not key[1] for block in self.free[key] if block.alone()]
        ages = {block: self.searches[False] - block.born for block in idle}
        released = True
        while reclaimed < target and released and ages:
            mean, released = sum(ages.values()) / len(ages), False
            for block in idle:
                if block in ages and ages[block] >= mean and not block.expandable:
                    released = True
                    reclaimed += block.size
                    del ages[block]
                    self.release(block)

    # ---- requests ----

    def round(self, size):
        size = max(size, 512)
        if self.divisions > 1 and size > 512 * self.divisions:
            step = (1 << size.bit_length() - 1) // self.divisions
            return -(-size // step) * step
        return -(-size // 512) * 512

    def find(self, key, size):
        blocks = self.free_blocks(key)
        at = bisect.bisect_left(blocks, (size, 0), key=blocks.key)
        self.searches[key[1]] += 1
        if at == len(blocks):
            return None
        while self.expandable and blocks[at].expandable and at + 1 < len(blocks) and \
                blocks[at + 1].room() < blocks[at].room():
            at += 1
        found = blocks[at]
        if size < self.max_split <= found.size or \
                (size >= self.max_split and found.size >= size + self.rounding):
            return None
        self.take(found)
        return found

    def map(self, block, size):
        page = PAGES[block.small]
        size, address = -(-size // page) * page, block.address
        if self.reserved + size > self.limit:
            return False
        self.take(block)
        if size < block.size:
            self.put(self.split(block, size), "unmapped")
        self.merge(block, "free")
        self.put(block)
        self.grow("segment_map", address, size, block.stream)
        return True

    def expandable_place(self, key, size):
        for unmapped in self.unmapped_blocks(key):
            before = unmapped.previous
            first = before if before and before.state == "free" else unmapped
            room, block = 0, first
            while room < size and block and block.state in ("free", "unmapped"):
                room += block.size
                block = block.next
            if room >= size:
                return first
        page = PAGES[key[1]]
        length = min(20 * MIB << 15, -(-(self.total + self.total // 8) // page) * page)
        made = Block(self.next_range, length, *key, self.next_range, True)
        self.next_range += 1 << 42
        self.put(made, "unmapped")
        return made

    def expand(self, key, size):
        block = self.expandable_place(key, size)
        if block.state == "unmapped" and not self.map(block, min(block.size, size)):
            return None
        while block.size < size:
            following = block.next
            if not self.map(following, min(size - block.size, following.size)):
                return None
            block = following
        self.take(block)
        return block

    def take_new(self, key, size):
        segment = 2 * MIB if size <= MIB else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.allowed is not None and self.reserved + segment > self.allowed:
            return None
        if self.expandable:
            return self.expand(key, size)
        if self.reserved + segment > self.limit:
            return None
        block = Block(self.next_segment, segment, *key, self.next_segment, False)
        self.next_segment += segment
        self.grow("segment_alloc", block.address, segment, block.stream)
        return block

    def find_or_take(self, key, size):
        found = self.find(key, size)
        if found:
            return found
        if self.collect_from and self.allowed is not None:
            self.collect_garbage()
        found = self.take_new(key, size)
        if not found and self.release_available(key, size):
            found = self.take_new(key, size)
        if not found:
            self.empty_cache()
            self.retries += 1
            found = self.take_new(key, size)
        return found

    def request(self, requested, stream):
        size = self.round(requested)
        block = self.find_or_take((stream, size <= MIB), size)
        if not block:
            self.ooms += 1
            self.log("oom", min(self.limit - self.reserved, 1 << 50), requested, stream)
            raise OutOfMemory
        rest = block.size - size
        if rest >= 512 if block.small or self.expandable else size < self.max_split and rest > MIB:
            self.put(self.split(block, size))
        block.state, block.requested = "used", requested
        self.allocated += block.size
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        self.log("alloc", block.address, requested, stream)
        return block

    def give_back(self, block):
        self.allocated -= block.size
        for action in ("free_requested", "free_completed"):
            self.log(action, block.address, block.size, block.stream)
        self.merge(block, "free")
        self.put(block)

    # ---- a snapshot as of torch.cuda.memory._dump_snapshot() ----

    def snapshot(self, used, conf):
        firsts = {}
        for block in [*used, *(block for blocks in self.free.values() for block in blocks)]:
            while block.previous and block.previous.state != "unmapped":
                block = block.previous
            firsts[block.address] = block
        return {"segments": [segment_of(firsts[address]) for address in sorted(firsts)],
                "device_traces": [[event_of(number, *event) for number, event in enumerate(self.events)]],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": conf}}


def segment_of(block):
    blocks, first = [], block
    while block and block.state != "unmapped":
        blocks.append({"address": block.address, "size": block.size, "requested_size": block.requested,
                       "state": "active_allocated" if block.state == "used" else "inactive", "frames": []})
        block = block.next
    live = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    return {"device": 0, "address": first.address, "total_size": sum(b["size"] for b in blocks),
            "allocated_size": live, "active_size": live, "requested_size": 0, "stream": first.stream,
            "segment_type": "small" if first.small else "large", "segment_pool_id": (0, 0),
            "is_expandable": first.expandable, "frames": [], "blocks": blocks}


def event_of(number, action, address, size, stream, operation):
    return {"action": action, "device_free" if action == "oom" else "addr": address, "size": size,
            "stream": stream, "time_us": 1000 + number,
            "frames": [{"name": f"operation_{operation}", "filename": "program.py", "line": operation}]}
