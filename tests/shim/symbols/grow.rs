// Keeps 1, 2 and 3 MiB of the simulated device from a method of a generic type.
use std::ffi::c_void;

#[link(name = "cuda")]
extern "C" {
    fn cuInit(flags: u32) -> i32;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: i32) -> i32;
    fn cuCtxSetCurrent(context: *mut c_void) -> i32;
    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) -> i32;
}

struct Pool<T> {
    blocks: Vec<T>,
}

trait Grow {
    fn grow(&mut self, bytes: usize);
}

impl Grow for Pool<u64> {
    #[inline(never)]
    fn grow(&mut self, bytes: usize) {
        let mut pointer = 0u64;
        assert_eq!(unsafe { cuMemAlloc_v2(&mut pointer, bytes) }, 0);
        self.blocks.push(pointer);
    }
}

fn main() {
    let mut context = std::ptr::null_mut();
    unsafe {
        assert_eq!(cuInit(0), 0);
        assert_eq!(cuDevicePrimaryCtxRetain(&mut context, 0), 0);
        assert_eq!(cuCtxSetCurrent(context), 0);
    }
    let mut pool = Pool { blocks: vec![] };
    for i in 1..4 {
        pool.grow(i << 20);
    }
    std::mem::forget(pool);
}
