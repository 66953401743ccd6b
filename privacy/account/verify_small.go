package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"parley/internal/vectors"
	"parley/privacy/internal/fixed"
)

type zcdpCase struct {
	caseHead
	Rho    float64 `json:"rho"`
	Delta  float64 `json:"delta"`
	Expect struct {
		Classic  float64 `json:"epsilon_classic"`
		Improved float64 `json:"epsilon_improved"`
		Order    float64 `json:"alpha_improved"`
		Gaussian float64 `json:"epsilon_if_gaussian"`
	} `json:"expect"`
}

func (c *zcdpCase) verify(v *verification, id string) error {
	classic, err := epsilonZCDPClassic(c.Rho, c.Delta)
	if err != nil {
		return err
	}
	improved, order, err := epsilonZCDP(c.Rho, c.Delta)
	if err != nil {
		return err
	}
	gaussian := []Mechanism{{Kind: Gaussian, Noise: 1 / math.Sqrt(2*c.Rho), Rate: 1, Diameter: 2, Count: 1}}
	if rho, ok, err := zcdp(gaussian, AddRemove); err != nil || !ok || math.Abs(rho-c.Rho) > 1e-14*c.Rho {
		return fmt.Errorf("rho %v of one Gaussian becomes %v (%w)", c.Rho, rho, err)
	}
	exact, err := Epsilon(gaussian, AddRemove, c.Delta)
	v.close(id+".epsilon_classic", c.Expect.Classic, classic, 1e-8)
	v.close(id+".epsilon_improved", c.Expect.Improved, improved, 1e-8)
	// A minimum is flat: searching for it places it to half the digits only.
	v.close(id+".alpha_improved", c.Expect.Order, order, 1e-6)
	v.close(id+".epsilon_if_gaussian", c.Expect.Gaussian, exact, 1e-8)
	return err
}

type theoremsCase struct {
	caseHead
	Epsilon float64 `json:"epsilon0"`
	Each    float64 `json:"delta0"`
	Count   int     `json:"k"`
	Slack   float64 `json:"advanced_slack"`
	Delta   float64 `json:"delta"`
	Expect  struct {
		BasicEpsilon    float64  `json:"basic_epsilon"`
		BasicDelta      float64  `json:"basic_delta"`
		AdvancedEpsilon float64  `json:"advanced_epsilon"`
		AdvancedDelta   float64  `json:"advanced_delta"`
		Optimal         *float64 `json:"optimal_epsilon"` // null where δ cannot be had
	} `json:"expect"`
}

func (c *theoremsCase) verify(v *verification, id string) error {
	each := Releases{Budget{c.Epsilon, c.Each}, c.Count}
	basic, err := Basic([]Releases{each})
	if err != nil {
		return err
	}
	advanced, err := advancedComposition([]Releases{each}, c.Slack)
	if err != nil {
		return err
	}
	v.close(id+".basic_epsilon", c.Expect.BasicEpsilon, basic.Epsilon, 1e-8)
	v.close(id+".basic_delta", c.Expect.BasicDelta, basic.Delta, 1e-8)
	v.close(id+".advanced_epsilon", c.Expect.AdvancedEpsilon, advanced.Epsilon, 1e-8)
	v.close(id+".advanced_delta", c.Expect.AdvancedDelta, advanced.Delta, 1e-8)
	optimal, err := optimal(each, c.Delta)
	if want := c.Expect.Optimal; want != nil {
		v.close(id+".optimal_epsilon", *want, optimal, 1e-8)
	} else {
		v.list.Equal(id+".optimal_epsilon", math.Inf(1), optimal)
	}
	return err
}

type sensitivityCase struct {
	caseHead
	Name   string `json:"name"`
	Params struct {
		Bound     float64       `json:"bound"`
		Bounds    []float64     `json:"bounds"`
		N         int           `json:"n"`
		Dim       int           `json:"dim"`
		Adjacency adjacencyJSON `json:"adjacency"`
	} `json:"params"`
	Expect struct {
		Sensitivity float64 `json:"sensitivity"`
	} `json:"expect"`
}

func (c *sensitivityCase) verify(v *verification, id string) error {
	p, a := c.Params, Adjacency(c.Params.Adjacency)
	var got float64
	var err error
	switch c.Name {
	case "l2_clipped_vector":
		got, err = vectorSensitivity(p.Bound, a)
	case "joint_l2_of_per_view_clips":
		got, err = jointSensitivity(p.Bounds, a)
	case "mean_of_clipped_rows_known_n":
		got, err = meanSensitivity(p.Bound, p.N, a)
	case "second_moment_sum_frobenius":
		got, err = momentSensitivity(p.Bound, a)
	case "count_sum_second_moment_joint":
		got, err = jointMomentSensitivity(p.Bound, a)
	case "l1_of_l2_clipped_vector":
		got, err = l1Sensitivity(p.Bound, p.Dim, a)
	default:
		return fmt.Errorf("sensitivity of unknown name %q", c.Name)
	}
	v.close(id+".sensitivity", c.Expect.Sensitivity, got, 1e-12)
	return err
}

// numberJSON is a number, or the name of one that JSON has none for.
type numberJSON float64

// UnmarshalJSON takes numbers, "NaN" and "Infinity" with a sign.
func (n *numberJSON) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	*n = numberJSON(x)
	return err
}

type clipCase struct {
	caseHead
	Norm   fixed.Norm   `json:"norm"`
	Input  []numberJSON `json:"input"`
	Bound  float64      `json:"bound"`
	Expect struct {
		Error   bool      `json:"error"`
		Norm    *float64  `json:"norm_before"` // null above the range of a float64
		Clipped *bool     `json:"clipped"`     // null on the boundary
		Output  []float64 `json:"output"`
	} `json:"expect"`
}

func (c *clipCase) verify(v *verification, id string) error {
	got := make([]float64, len(c.Input))
	for i, x := range c.Input {
		got[i] = float64(x)
	}
	norm, clipped, err := fixed.Clip(got, c.Bound, c.Norm)
	if err != nil && !errors.Is(err, fixed.ErrNotFinite) {
		return err
	}
	v.list.Equal(id+".error", c.Expect.Error, err != nil)
	if c.Expect.Error || err != nil {
		return nil
	}
	v.list.Floats(id+".output", c.Expect.Output, got, vectors.Tolerance{Rel: 1e-12})
	if c.Expect.Norm != nil {
		v.close(id+".norm_before", *c.Expect.Norm, norm, 1e-12)
	} else {
		v.list.Equal(id+".norm_before", math.Inf(1), norm)
	}
	if c.Expect.Clipped != nil {
		v.list.Equal(id+".clipped", *c.Expect.Clipped, clipped)
	} else {
		v.close(id+".norm_before on the boundary", c.Bound, norm, 1e-12)
	}
	v.list.Equal(id+": norm of the output within the bound", true, withinBound(got, c.Bound, c.Norm))
	return nil
}

// withinBound says whether the norm, without any rounding, is at most
// bound·(1 + 4e-16).
func withinBound(v []float64, bound float64, norm fixed.Norm) bool {
	sum := new(big.Rat)
	for _, x := range v {
		r := new(big.Rat).SetFloat64(x)
		if r == nil {
			return false
		}
		if norm == fixed.L2 {
			r.Mul(r, r)
		}
		sum.Add(sum, r.Abs(r))
	}
	limit := new(big.Rat).SetFloat64(bound)
	if limit == nil {
		return false
	}
	limit.Mul(limit, big.NewRat(1e16+4, 1e16))
	if norm == fixed.L2 {
		limit.Mul(limit, limit)
	}
	return sum.Cmp(limit) <= 0
}
