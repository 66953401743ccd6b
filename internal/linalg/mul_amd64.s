#include "textflag.h"

// func mulAdd4x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)
//
// Y0..Y7 hold the tile, two registers to a row. Each step takes one row of B
// (Y8, Y9) and one element of each of the four rows of A (Y10..Y13). Eight
// independent chains of fused multiply-adds hide the latency of the unit.
TEXT ·mulAdd4x8(SB), NOSPLIT, $0-64
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ ra+16(FP), R8
	MOVQ ca+24(FP), R9
	MOVQ b+32(FP), DI
	MOVQ ldb+40(FP), R10
	MOVQ c+48(FP), DX
	MOVQ ldc+56(FP), R11
	SHLQ $3, R8               // strides in bytes
	SHLQ $3, R9
	SHLQ $3, R10
	SHLQ $3, R11
	LEAQ (R8)(R8*2), R12      // offset of A's fourth row
	LEAQ (R11)(R11*2), R13    // offset of C's fourth row

	VMOVUPD (DX), Y0
	VMOVUPD 32(DX), Y1
	VMOVUPD (DX)(R11*1), Y2
	VMOVUPD 32(DX)(R11*1), Y3
	VMOVUPD (DX)(R11*2), Y4
	VMOVUPD 32(DX)(R11*2), Y5
	VMOVUPD (DX)(R13*1), Y6
	VMOVUPD 32(DX)(R13*1), Y7

	TESTQ CX, CX
	JLE   store

step:
	VMOVUPD      (DI), Y8
	VMOVUPD      32(DI), Y9
	VBROADCASTSD (SI), Y10
	VBROADCASTSD (SI)(R8*1), Y11
	VBROADCASTSD (SI)(R8*2), Y12
	VBROADCASTSD (SI)(R12*1), Y13
	VFMADD231PD  Y8, Y10, Y0  // Y0 += Y8·Y10, rounded once
	VFMADD231PD  Y9, Y10, Y1
	VFMADD231PD  Y8, Y11, Y2
	VFMADD231PD  Y9, Y11, Y3
	VFMADD231PD  Y8, Y12, Y4
	VFMADD231PD  Y9, Y12, Y5
	VFMADD231PD  Y8, Y13, Y6
	VFMADD231PD  Y9, Y13, Y7
	ADDQ         R9, SI
	ADDQ         R10, DI
	DECQ         CX
	JNZ          step

store:
	VMOVUPD Y0, (DX)
	VMOVUPD Y1, 32(DX)
	VMOVUPD Y2, (DX)(R11*1)
	VMOVUPD Y3, 32(DX)(R11*1)
	VMOVUPD Y4, (DX)(R11*2)
	VMOVUPD Y5, 32(DX)(R11*2)
	VMOVUPD Y6, (DX)(R13*1)
	VMOVUPD Y7, 32(DX)(R13*1)

	// Dirty upper halves would slow every later scalar instruction.
	VZEROUPPER
	RET

// func mulAdd8x16(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)
//
// Z0..Z15 hold the tile, two registers to a row. Each step takes one row of B
// (Z16, Z17) and one element of each of the eight rows of A (Z18..Z25).
TEXT ·mulAdd8x16(SB), NOSPLIT, $0-64
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ ra+16(FP), R8
	MOVQ ca+24(FP), R9
	MOVQ b+32(FP), DI
	MOVQ ldb+40(FP), R10
	MOVQ c+48(FP), DX
	MOVQ ldc+56(FP), R11
	SHLQ $3, R8
	SHLQ $3, R9
	SHLQ $3, R10
	SHLQ $3, R11
	LEAQ (R8)(R8*2), R12      // offset of a fourth row
	LEAQ (R11)(R11*2), R13
	LEAQ (SI)(R8*4), AX       // A's fifth row
	LEAQ (DX)(R11*4), BX      // C's fifth row

	VMOVUPD (DX), Z0
	VMOVUPD 64(DX), Z1
	VMOVUPD (DX)(R11*1), Z2
	VMOVUPD 64(DX)(R11*1), Z3
	VMOVUPD (DX)(R11*2), Z4
	VMOVUPD 64(DX)(R11*2), Z5
	VMOVUPD (DX)(R13*1), Z6
	VMOVUPD 64(DX)(R13*1), Z7
	VMOVUPD (BX), Z8
	VMOVUPD 64(BX), Z9
	VMOVUPD (BX)(R11*1), Z10
	VMOVUPD 64(BX)(R11*1), Z11
	VMOVUPD (BX)(R11*2), Z12
	VMOVUPD 64(BX)(R11*2), Z13
	VMOVUPD (BX)(R13*1), Z14
	VMOVUPD 64(BX)(R13*1), Z15

	TESTQ CX, CX
	JLE   store

step:
	VMOVUPD      (DI), Z16
	VMOVUPD      64(DI), Z17
	VBROADCASTSD (SI), Z18
	VBROADCASTSD (SI)(R8*1), Z19
	VBROADCASTSD (SI)(R8*2), Z20
	VBROADCASTSD (SI)(R12*1), Z21
	VBROADCASTSD (AX), Z22
	VBROADCASTSD (AX)(R8*1), Z23
	VBROADCASTSD (AX)(R8*2), Z24
	VBROADCASTSD (AX)(R12*1), Z25
	VFMADD231PD  Z16, Z18, Z0
	VFMADD231PD  Z17, Z18, Z1
	VFMADD231PD  Z16, Z19, Z2
	VFMADD231PD  Z17, Z19, Z3
	VFMADD231PD  Z16, Z20, Z4
	VFMADD231PD  Z17, Z20, Z5
	VFMADD231PD  Z16, Z21, Z6
	VFMADD231PD  Z17, Z21, Z7
	VFMADD231PD  Z16, Z22, Z8
	VFMADD231PD  Z17, Z22, Z9
	VFMADD231PD  Z16, Z23, Z10
	VFMADD231PD  Z17, Z23, Z11
	VFMADD231PD  Z16, Z24, Z12
	VFMADD231PD  Z17, Z24, Z13
	VFMADD231PD  Z16, Z25, Z14
	VFMADD231PD  Z17, Z25, Z15
	ADDQ         R9, SI
	ADDQ         R9, AX
	ADDQ         R10, DI
	DECQ         CX
	JNZ          step

store:
	VMOVUPD Z0, (DX)
	VMOVUPD Z1, 64(DX)
	VMOVUPD Z2, (DX)(R11*1)
	VMOVUPD Z3, 64(DX)(R11*1)
	VMOVUPD Z4, (DX)(R11*2)
	VMOVUPD Z5, 64(DX)(R11*2)
	VMOVUPD Z6, (DX)(R13*1)
	VMOVUPD Z7, 64(DX)(R13*1)
	VMOVUPD Z8, (BX)
	VMOVUPD Z9, 64(BX)
	VMOVUPD Z10, (BX)(R11*1)
	VMOVUPD Z11, 64(BX)(R11*1)
	VMOVUPD Z12, (BX)(R11*2)
	VMOVUPD Z13, 64(BX)(R11*2)
	VMOVUPD Z14, (BX)(R13*1)
	VMOVUPD Z15, 64(BX)(R13*1)
	VZEROUPPER
	RET

// func mulAdd8x8(n int, a *float64, ra, ca int, b *float64, ldb int, c *float64, ldc int)
//
// Z0..Z7 hold the tile, a register to a row.
TEXT ·mulAdd8x8(SB), NOSPLIT, $0-64
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ ra+16(FP), R8
	MOVQ ca+24(FP), R9
	MOVQ b+32(FP), DI
	MOVQ ldb+40(FP), R10
	MOVQ c+48(FP), DX
	MOVQ ldc+56(FP), R11
	SHLQ $3, R8
	SHLQ $3, R9
	SHLQ $3, R10
	SHLQ $3, R11
	LEAQ (R8)(R8*2), R12      // offset of a fourth row
	LEAQ (R11)(R11*2), R13
	LEAQ (SI)(R8*4), AX       // A's fifth row
	LEAQ (DX)(R11*4), BX      // C's fifth row

	VMOVUPD (DX), Z0
	VMOVUPD (DX)(R11*1), Z1
	VMOVUPD (DX)(R11*2), Z2
	VMOVUPD (DX)(R13*1), Z3
	VMOVUPD (BX), Z4
	VMOVUPD (BX)(R11*1), Z5
	VMOVUPD (BX)(R11*2), Z6
	VMOVUPD (BX)(R13*1), Z7

	TESTQ CX, CX
	JLE   store

step:
	VMOVUPD      (DI), Z16
	VBROADCASTSD (SI), Z18
	VBROADCASTSD (SI)(R8*1), Z19
	VBROADCASTSD (SI)(R8*2), Z20
	VBROADCASTSD (SI)(R12*1), Z21
	VBROADCASTSD (AX), Z22
	VBROADCASTSD (AX)(R8*1), Z23
	VBROADCASTSD (AX)(R8*2), Z24
	VBROADCASTSD (AX)(R12*1), Z25
	VFMADD231PD  Z16, Z18, Z0
	VFMADD231PD  Z16, Z19, Z1
	VFMADD231PD  Z16, Z20, Z2
	VFMADD231PD  Z16, Z21, Z3
	VFMADD231PD  Z16, Z22, Z4
	VFMADD231PD  Z16, Z23, Z5
	VFMADD231PD  Z16, Z24, Z6
	VFMADD231PD  Z16, Z25, Z7
	ADDQ         R9, SI
	ADDQ         R9, AX
	ADDQ         R10, DI
	DECQ         CX
	JNZ          step

store:
	VMOVUPD Z0, (DX)
	VMOVUPD Z1, (DX)(R11*1)
	VMOVUPD Z2, (DX)(R11*2)
	VMOVUPD Z3, (DX)(R13*1)
	VMOVUPD Z4, (BX)
	VMOVUPD Z5, (BX)(R11*1)
	VMOVUPD Z6, (BX)(R11*2)
	VMOVUPD Z7, (BX)(R13*1)
	VZEROUPPER
	RET
