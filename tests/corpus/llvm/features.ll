; corpus: llc+; sm_80 sm_90a; -mattr=+ptx83
; corpus o0: llc+; sm_80; -O0 -mattr=+ptx83
; What LLVM's NVPTX backend prints for constructs that no C++ front end reaches easily.
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@array = addrspace(1) global [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 4
@pointer = addrspace(1) global ptr addrspace(1) getelementptr ([4 x i32], ptr addrspace(1) @array, i64 0, i64 2), align 8
@generic = addrspace(1) global ptr addrspacecast (ptr addrspace(1) @array to ptr), align 8
@packed = addrspace(1) global <{ i8, ptr, i16, float }> <{ i8 7, ptr addrspacecast (ptr addrspace(1) @array to ptr), i16 -2, float 1.5 }>, align 1
@function = addrspace(1) global ptr @weak_one, align 8
@text = private unnamed_addr addrspace(4) constant [6 x i8] c"a\00b\FFc\00", align 1
@tile = internal addrspace(3) global [64 x float] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 16
@weak_data = weak addrspace(1) global i64 5, align 8
@zero = addrspace(1) global [100 x double] zeroinitializer, align 8
@half = addrspace(1) global [3 x half] [half 1.0, half -2.5, half 0xH7C00], align 2
@external = external addrspace(1) global i32, align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare float @llvm.fma.f32(float, float, float)
declare i32 @llvm.ctpop.i32(i32)
declare i64 @llvm.bitreverse.i64(i64)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define weak i32 @weak_one(i32 %x) noinline {
  %r = add i32 %x, 1
  ret i32 %r
}

define linkonce_odr i32 @once(i32 %x) noinline {
  %r = mul i32 %x, 3
  ret i32 %r
}

define internal { i32, float, i8 } @several(i32 %a, float %b) noinline {
  %1 = insertvalue { i32, float, i8 } undef, i32 %a, 0
  %2 = insertvalue { i32, float, i8 } %1, float %b, 1
  %3 = insertvalue { i32, float, i8 } %2, i8 9, 2
  ret { i32, float, i8 } %3
}

define internal <4 x half> @vector(<4 x half> %v, <2 x i16> %w, i1 %p) noinline {
  %s = fadd <4 x half> %v, %v
  %r = select i1 %p, <4 x half> %s, <4 x half> %v
  ret <4 x half> %r
}

define internal i32 @by_value(ptr byval([5 x i32]) align 4 %p, i32 %i) noinline {
  %q = getelementptr [5 x i32], ptr %p, i32 0, i32 %i
  %v = load i32, ptr %q
  ret i32 %v
}

define internal void @stops() noreturn noinline {
  call void asm sideeffect "exit;", ""()
  unreachable
}

define ptx_kernel void @kernel(ptr addrspace(1) %out, i32 %n, float %f, ptr %fn) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %big = alloca [5 x i32], align 4
  %slot = getelementptr [5 x i32], ptr %big, i32 0, i32 %t
  store i32 %n, ptr %slot
  switch i32 %n, label %other [
    i32 0, label %zero_case
    i32 1, label %one_case
    i32 2, label %two_case
    i32 3, label %one_case
    i32 4, label %four_case
    i32 5, label %two_case
  ]
zero_case:
  %a = call i32 @weak_one(i32 %n)
  br label %join
one_case:
  %s = call { i32, float, i8 } @several(i32 %n, float %f)
  %b = extractvalue { i32, float, i8 } %s, 0
  br label %join
two_case:
  %c = call i32 %fn(i32 %n)
  br label %join
four_case:
  %d = call i32 @by_value(ptr byval([5 x i32]) align 4 %big, i32 2)
  br label %join
other:
  %e = icmp eq i32 %n, 99
  br i1 %e, label %stop, label %join
stop:
  call void @stops()
  unreachable
join:
  %v = phi i32 [ %a, %zero_case ], [ %b, %one_case ], [ %c, %two_case ], [ %d, %four_case ], [ 17, %other ]
  %o = call i32 @once(i32 %v)
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %o, ptr addrspace(1) %po, align 4
  call void @llvm.nvvm.barrier0()
  ret void
}

define ptx_kernel void @atomics(ptr addrspace(1) %p, ptr %g, ptr addrspace(3) %s) {
  %a = atomicrmw add ptr addrspace(1) %p, i32 3 syncscope("device") monotonic
  %b = atomicrmw xchg ptr %g, i64 5 seq_cst
  %c = atomicrmw fadd ptr addrspace(1) %p, float 1.0 monotonic
  %d = cmpxchg ptr addrspace(3) %s, i32 0, i32 1 acq_rel monotonic
  %e = atomicrmw umax ptr addrspace(3) %s, i32 %a monotonic
  %f = load atomic i32, ptr %g monotonic, align 4
  %h = load volatile i16, ptr addrspace(1) %p, align 2
  store volatile i16 %h, ptr addrspace(3) %s, align 2
  store atomic i32 %f, ptr addrspace(1) %p monotonic, align 4
  fence seq_cst
  ret void
}

define ptx_kernel void @arithmetic(ptr addrspace(1) %p, i64 %x, i32 %y, float %f, double %d, half %h) {
  %1 = call i64 @llvm.bitreverse.i64(i64 %x)
  %2 = call i32 @llvm.ctpop.i32(i32 %y)
  %3 = call i32 @llvm.fshl.i32(i32 %y, i32 %2, i32 9)
  %4 = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %y, i32 %3)
  %5 = extractvalue { i32, i1 } %4, 0
  %6 = extractvalue { i32, i1 } %4, 1
  %7 = select i1 %6, i32 -1, i32 %5
  %8 = sext i32 %7 to i128
  %9 = zext i64 %1 to i128
  %10 = mul i128 %8, %9
  %11 = lshr i128 %10, 17
  %12 = trunc i128 %11 to i64
  %13 = udiv i64 %12, %x
  %14 = call float @llvm.fma.f32(float %f, float 0x3FB99999A0000000, float 2.5)
  %15 = fptoui float %14 to i8
  %16 = zext i8 %15 to i64
  %17 = add i64 %13, %16
  %18 = fcmp uno double %d, 1.0e+300
  %19 = uitofp i1 %18 to half
  %20 = fmul half %h, %19
  %21 = fpext half %20 to double
  %22 = fptosi double %21 to i64
  %23 = fdiv float %f, 3.0
  %24 = fptosi float %23 to i64
  %25 = xor i64 %22, %17
  %26 = srem i64 %25, %24
  store i64 %26, ptr addrspace(1) %p, align 8
  ret void
}

define ptx_kernel void @vectors(ptr addrspace(1) align 16 %p, ptr addrspace(4) %c, <2 x half> %h, [3 x i16] %array) {
  %a = load <4 x float>, ptr addrspace(1) %p, align 16
  %b = load <2 x i64>, ptr addrspace(4) %c, align 16
  %s = shufflevector <4 x float> %a, <4 x float> undef, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %h4 = shufflevector <2 x half> %h, <2 x half> undef, <4 x i32> <i32 0, i32 1, i32 0, i32 1>
  %v = call <4 x half> @vector(<4 x half> %h4, <2 x i16> zeroinitializer, i1 true)
  %q = getelementptr i8, ptr addrspace(1) %p, i64 64
  store <4 x float> %s, ptr addrspace(1) %p, align 16
  store <4 x half> %v, ptr addrspace(1) %q, align 8
  %q2 = getelementptr i8, ptr addrspace(1) %p, i64 128
  store <2 x i64> %b, ptr addrspace(1) %q2, align 16
  %e = extractvalue [3 x i16] %array, 1
  %q3 = getelementptr i8, ptr addrspace(1) %p, i64 256
  store i16 %e, ptr addrspace(1) %q3, align 2
  %t = getelementptr [64 x float], ptr addrspace(3) @tile, i32 0, i32 7
  store float 1.0, ptr addrspace(3) %t
  %m = getelementptr [6 x i8], ptr addrspace(4) @text, i32 0, i32 2
  %ch = load i8, ptr addrspace(4) %m
  store i8 %ch, ptr addrspace(3) @dynamic
  %ext = load i32, ptr addrspace(1) @external
  store i32 %ext, ptr addrspace(1) @array
  ret void
}
