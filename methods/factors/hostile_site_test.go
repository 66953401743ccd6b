package factors

import (
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/federated"
)

// excused says whether a study ended in a way that sites which are all honest
// could bring about together: what nobody has, or what does not vary anywhere,
// cannot be modelled.
func excused(err error) bool {
	for _, text := range []string{"no site has a single value", "for every subject of every site", "nothing varies: every observed feature is constant", "nothing is left of it"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// numbers are what a hostile site puts in the place of one of its own.
func hostileNumber(r *rand.Rand, x float64) float64 {
	return []float64{
		0, 1, -1, -x, x + 1, x * 1e9, x * 1e-9, 1e6, -1e6, 1e12, 1e30, -1e30, 1e39, 1e74, -1e74, 1e75, 1e99, -1e99, 1e154, 1e308, -1e308, 5e-324, 1e-300, 1e-99, 1e-39, 1e-12,
		1 << 31, 1<<31 - 1, 1 << 53, x * (1 + 1e-12),
	}[r.IntN(30)]
}

// hostile changes a number, a length or an order somewhere inside a message.
func hostile(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if r.IntN(50) == 0 {
			v.SetZero()
			return
		}
		hostile(r, v.Elem())
	case reflect.Struct:
		i := r.IntN(v.NumField())
		if k := r.IntN(v.NumField()); r.IntN(10) == 0 && v.Field(i).Type() == v.Field(k).Type() {
			a, b := reflect.New(v.Field(i).Type()).Elem(), v.Field(k)
			a.Set(v.Field(i))
			v.Field(i).Set(b)
			b.Set(a)
			return
		}
		hostile(r, v.Field(i))
	case reflect.Slice:
		n := v.Len()
		switch {
		case n == 0 || r.IntN(12) == 0:
			if r.IntN(2) == 0 && n > 0 {
				v.Set(v.Slice(0, r.IntN(n)))
			} else if n > 0 {
				v.Set(reflect.Append(v, v.Index(r.IntN(n))))
			} else {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
		case v.Type().Elem().Kind() == reflect.Float64 && r.IntN(4) == 0: // all of them alike
			x := v.Index(r.IntN(n)).Float()
			f := hostileNumber(r, x)
			for i := range n {
				if r.IntN(2) == 0 {
					v.Index(i).SetFloat(f)
				} else if x != 0 {
					v.Index(i).SetFloat(v.Index(i).Float() * (f / x))
				}
			}
		default:
			hostile(r, v.Index(r.IntN(n)))
		}
	case reflect.Array:
		hostile(r, v.Index(r.IntN(v.Len())))
	case reflect.Int:
		v.SetInt([]int64{-1, 0, 1, v.Int() + 1, v.Int() - 1, 1 << 31, 1<<31 - 1, 1 << 40, math.MaxInt64, math.MinInt64}[r.IntN(10)])
	case reflect.Float64:
		v.SetFloat(hostileNumber(r, v.Float()))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}

// hostileSum changes integers of a noised sum, which no noise excludes.
func hostileSum(r *rand.Rand, f *forged) {
	block := f.Blocks[r.IntN(len(f.Blocks))]
	far := 30 * f.SD / f.Step
	for range 1 + r.IntN(3) {
		x := []float64{0, 1, -1, far, -far, 100 * far, -100 * far, 1e6 * far, -1e6 * far, 1 << 40, -1 << 40, 1 << 62, -1 << 62, math.MaxInt64 / 2}[r.IntN(14)]
		switch r.IntN(3) {
		case 0:
			block[r.IntN(len(block))] = int64(x)
		case 1: // everything as far out as can be
			for i := range block {
				block[i] = int64(x * (2*r.Float64() - 1))
			}
		default:
			for i := range block {
				block[i] = int64(x)
			}
		}
	}
}

// hostileAnswer changes an honest answer in some places.
func hostileAnswer(t testing.TB, r *rand.Rand, said method.Contribution) (method.Contribution, bool) {
	t.Helper()
	answer := answerTo(said.Kind)
	if names := slices.Sorted(maps.Keys(said.Sums)); len(names) > 0 && (answer == nil || r.IntN(2) == 0) {
		for range 1 + r.IntN(2) {
			said = withSum(t, said, names[r.IntN(len(names))], func(f *forged) { hostileSum(r, f) })
		}
		if answer == nil || r.IntN(2) == 0 {
			return said, true
		}
	}
	if err := wire.Unmarshal(said.Body, answer); err != nil {
		t.Fatal(err)
	}
	target := reflect.ValueOf(answer).Elem()
	if fit, ok := answer.(*federated.FitAnswer); ok && r.IntN(3) > 0 {
		target = reflect.ValueOf(&fit.Blocks[r.IntN(len(fit.Blocks))]).Elem()
	}
	for range []int{1, 1, 1, 2, 4}[r.IntN(5)] {
		hostile(r, target)
	}
	var err error
	said.Body, err = wire.Marshal(answer)
	return said, err == nil
}

// everyStudy has exchanges of studies with every option that changes them.
func everyStudy(t testing.TB) []exchange {
	list := everyKind(t)
	list = append(list, exchanges(t, threeSites(t, adjustedOptions))...)
	for _, options := range []string{
		"  latent: 2\n  scaling: view\n  noise: feature\n  rounds: 5\n", "  latent: 1\n  scaling: none\n", "  latent: 3\n  scaling: range\n",
	} {
		list = append(list, exchanges(t, threeSites(t, options))...)
	}
	for _, epsilon := range []string{"0.01", "1000"} {
		list = append(list, exchanges(t, private(statisticsOptions, strings.Replace(totalBudget, "epsilon: 3", "epsilon: "+epsilon, 1)).study(t))...)
	}
	return list
}

// A hostile site is refused when it speaks, or harms nothing that follows: the
// study goes on to its end with the other sites, whatever the site said.
func TestNoAnswerThatIsTakenFailsTheStudy(t *testing.T) {
	tries := 10
	if testkit.Sized(true, false) {
		tries = 3
	}
	r := rand.New(rand.NewPCG(17, 4))
	lies, all := 0, 0
	for n, x := range everyStudy(t) {
		refused, tried := 0, 0
		for range tries {
			said, ok := hostileAnswer(t, r, x.said[len(x.said)-1])
			if !ok {
				continue // what cannot be sent
			}
			tried++
			no, after := x.last(t, said)
			if no != nil {
				refused++
			}
			if after != nil && !excused(after) {
				t.Errorf("exchange %d, %s: an answer was taken, and then: %v", n, said.Kind, after)
			}
		}
		t.Logf("%s: %d of %d answers were refused", x.tasks[0].Kind, refused, tried)
		lies, all = lies+refused, all+tried
	}
	if lies < all/5 {
		t.Errorf("only %d of %d lies were refused", lies, all)
	}
}
