/*
 * The exported dlsym. RTLD_NEXT and RTLD_DEFAULT mean "next after, or seen from, the object that
 * calls", which the real dlsym tells by its return address: so what is not ours must reach it by a
 * jump that leaves the caller's return address in place. A C tail call is none at -O0.
 */
#if defined(__x86_64__)
	.text
	.p2align 4
	.globl gm_dlsym
	.type gm_dlsym, @function
gm_dlsym:
	.cfi_startproc
	endbr64
	subq $24, %rsp			/* handle, name; keeps the stack 16-byte aligned */
	.cfi_adjust_cfa_offset 24
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	leaq 16(%rsp), %rdx		/* &result */
	call gm_dlsym_hook
	testb %al, %al
	jne 1f
	call gm_real_dlsym
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	addq $24, %rsp
	.cfi_adjust_cfa_offset -24
	testq %rax, %rax
	je 2f
	jmp *%rax
2:
	ret				/* no dlsym anywhere: NULL */
1:
	.cfi_adjust_cfa_offset 24
	movq 16(%rsp), %rax
	addq $24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size gm_dlsym, .-gm_dlsym
	.symver gm_dlsym, dlsym@@GLIBC_2.34, remove
	.symver gm_dlsym_old, dlsym@GLIBC_2.2.5, remove
	.globl gm_dlsym_old
	.set gm_dlsym_old, gm_dlsym
#elif defined(__aarch64__)
	.text
	.p2align 4
	.globl gm_dlsym
	.type gm_dlsym, %function
gm_dlsym:
	.cfi_startproc
	hint #34			/* bti c */
	stp x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	stp x0, x1, [sp, #16]
	add x2, sp, #32
	bl gm_dlsym_hook
	tst w0, #0xff
	b.ne 1f
	bl gm_real_dlsym
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #48
	cbz x16, 2f
	br x16
2:
	mov x0, #0
	ret
1:
	ldr x0, [sp, #32]
	ldp x29, x30, [sp], #48
	ret
	.cfi_endproc
	.size gm_dlsym, .-gm_dlsym
	.symver gm_dlsym, dlsym@@GLIBC_2.34, remove
	.symver gm_dlsym_old, dlsym@GLIBC_2.17, remove
	.globl gm_dlsym_old
	.set gm_dlsym_old, gm_dlsym
#else
#error "dlsym has to be forwarded by a jump; write it for this processor here"
#endif
	.section .note.GNU-stack, "", %progbits
