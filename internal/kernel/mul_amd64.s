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
