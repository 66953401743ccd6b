// Package fixed sums vectors of bounded norm in integers, so that what one
// record can change is an exact statement, and adds exact noise to the sums.
//
// A [Grid] is chosen from public numbers alone: how many steps of fixed point
// the clipping bound has, and which integer noise keeps the promise that was
// charged for. A [Sum] takes one vector for each record: it clips it ([Clip]),
// rounds it to the grid so that the norm of the integers is at most [Grid.Limit],
// and adds it (Vectors) or its outer product with itself (Moments). A record may have several
// vectors: see [Sum.AddParts]. [Sum.Release]
// adds the noise, once.
//
// # Sensitivity
//
// Let q be a record's integers, ‖q‖ ≤ L in the norm of the grid (l2, or l1 for
// Laplace noise), Δ the difference between two neighbours' sums.
//
//	Vectors: Δ = q       or q − r,       so ‖Δ‖  ≤ L  or 2L
//	Moments: Δ = q qᵀ    or q qᵀ − r rᵀ,  so ‖Δ‖F ≤ L² or √2·L²
//
// where the first is a record more or less and the second one record for
// another; ‖q qᵀ − r rᵀ‖F² = |q|⁴ + |r|⁴ − 2⟨q, r⟩² ≤ 2L⁴.
//
// A record may be several vectors q_k, such as those of one person's rows, if Σ|q_k|² ≤ L² (l1: Σ|q_k| ≤
// L): they are clipped and rounded as one vector. Of Vectors each enters another block, and q is the
// vector of all blocks. Of Moments several may enter one block b, to which they add M_b = Σ q_k q_kᵀ.
// Then all blocks together have ‖M‖F ≤ Σ_b ‖M_b‖F ≤ Σ_b tr M_b = Σ|q_k|² ≤ L², and for another such
// record N ‖M − N‖F² = ‖M‖F² + ‖N‖F² − 2 Σ_b tr(M_b N_b) ≤ 2L⁴, as the trace of a product of positive
// semidefinite matrices is not negative. Moments are summed on
// and above the diagonal. With noise of variance σ² on the diagonal and σ²/2
// beside it, Σᵢ Δᵢᵢ²/σ² + Σᵢ<ⱼ Δᵢⱼ²/(σ²/2) = ‖Δ‖F²/σ²: the Gaussian mechanism
// on the matrix in the Frobenius norm.
//
// All of this holds between integers. The step in real units is public and
// only multiplies what was released, so no float rounding can break it.
package fixed
