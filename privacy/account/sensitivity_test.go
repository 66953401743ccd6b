package account

import (
	"math"
	"math/rand/v2"
	"testing"
)

// distances returns, of two rows, how far count, sum and moments of a data set
// move when one replaces the other; and, with y nil, when x is added.
func distances(x, y []float64) (sum, moments float64) {
	if y == nil {
		y = make([]float64, len(x))
	}
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
		for j := range x {
			d := x[i]*x[j] - y[i]*y[j]
			moments += d * d
		}
	}
	return sum, moments
}

// Random rows, half of them as long as the bound allows, never move a sum by
// more than its sensitivity, and some come close: 4000 pairs of rows in two
// dimensions.
func TestSensitivitiesHoldAndAreAttained(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, bound := range []float64{0.3, 0.9, 3} {
		row := func() []float64 {
			sin, cos := math.Sincos(2 * math.Pi * r.Float64())
			length := bound * max(r.Float64(), math.Round(r.Float64()))
			return []float64{length * cos, length * sin}
		}
		worst := map[string]float64{}
		for range 4000 {
			x, y := row(), row()
			for _, a := range []Adjacency{AddRemove, ReplaceOne} {
				count := 1.0
				if a == ReplaceOne {
					count = 0
				} else {
					y = nil
				}
				sum, moments := distances(x, y)
				if y == nil {
					y = row()
				}
				for name, d := range map[string]float64{"vector": math.Sqrt(sum), "moments": math.Sqrt(moments),
					"joint": math.Sqrt(count + sum + moments)} {
					worst[name+" "+string(a)] = max(worst[name+" "+string(a)], d)
				}
			}
		}
		for name, f := range map[string]func(float64, Adjacency) (float64, error){
			"vector": vectorSensitivity, "moments": momentSensitivity, "joint": jointMomentSensitivity} {
			for _, a := range []Adjacency{AddRemove, ReplaceOne} {
				s, err := f(bound, a)
				if w := worst[name+" "+string(a)]; err != nil || w > s*(1+1e-12) || w < 0.99*s {
					t.Errorf("%s, %s, bound %v: rows move it by up to %v, sensitivity %v (%v)", name, a,
						bound, w, s, err)
				}
			}
		}
	}
}

func TestSensitivityOfPartsMeansAndSums(t *testing.T) {
	joint, err1 := jointSensitivity([]float64{3, 4}, ReplaceOne)
	mean, err2 := meanSensitivity(2, 50, AddRemove)
	l1, err3 := l1Sensitivity(1, 16, AddRemove)
	if joint != 10 || mean != 0.04 || l1 != 4 || err1 != nil || err2 != nil || err3 != nil {
		t.Errorf("%v %v %v (%v %v %v)", joint, mean, l1, err1, err2, err3)
	}
	for name, err := range map[string]error{
		"adjacency":      second(vectorSensitivity(1, "neighbour")),
		"negative bound": second(vectorSensitivity(-1, AddRemove)),
		"NaN":            second(momentSensitivity(math.NaN(), AddRemove)),
		"infinite":       second(jointMomentSensitivity(math.Inf(1), ReplaceOne)),
		"no parts":       second(jointSensitivity(nil, AddRemove)),
		"no rows":        second(meanSensitivity(1, 0, AddRemove)),
		"no dimension":   second(l1Sensitivity(1, 0, AddRemove)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
