package mixture

import (
	"math"
	"math/rand/v2"
	"reflect"

	"parley/methods/mixture/options"
)

// What a message holds, changed for the worse: numbers of every kind and size,
// lists that are too short, too long or gone.

var worstFloats = []float64{0, math.Copysign(0, -1), 5e-324, -5e-324, 1, -1, 0.5, 2, 1e6, -1e6, 1e9 + 1, 1e75, -1e75, 1e150, 1e308, -1e308, math.MaxFloat64, -math.MaxFloat64}

// Numbers that no message of this program holds, but other programs may write.
var noFloats = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}

var worstInts = []int64{0, 1, -1, 2, 7, 39, 40, 41, 1 << 20, options.MaxRows, options.MaxRows + 1, -options.MaxRows, 1 << 53, 1 << 62, -1 << 62, math.MaxInt64, math.MinInt64}

// mutate changes something of what p points to. It returns false if there is nothing
// to change.
func mutate(r *rand.Rand, p any) bool {
	var changes []func()
	collect(r, reflect.ValueOf(p).Elem(), &changes)
	if len(changes) == 0 {
		return false
	}
	for range 1 + r.IntN(2)*r.IntN(3) {
		changes[r.IntN(len(changes))]()
	}
	return true
}

// each change of v, with chance in what it becomes.
func collect(r *rand.Rand, v reflect.Value, changes *[]func()) {
	add := func(f func()) { *changes = append(*changes, f) }
	switch v.Kind() {
	case reflect.Float64:
		add(func() { v.SetFloat(pickOne(r, worstFloats)) })
		add(func() { v.SetFloat(-v.Float()) })
		if r.IntN(8) == 0 {
			add(func() { v.SetFloat(pickOne(r, noFloats)) })
		}
	case reflect.Int:
		add(func() { v.SetInt(pickOne(r, worstInts)) })
		add(func() { v.SetInt(v.Int() + 1) })
	case reflect.String:
		add(func() { v.SetString("<b>\x00" + v.String()) })
		add(func() { v.SetString("") })
	case reflect.Pointer:
		if v.IsNil() {
			add(func() { v.Set(reflect.New(v.Type().Elem())) })
			return
		}
		add(func() { v.SetZero() })
		collect(r, v.Elem(), changes)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(r, v.Field(i), changes)
			}
		}
	case reflect.Slice:
		n := v.Len()
		add(func() { v.SetZero() })
		add(func() {
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, n+1), v))
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		})
		if n == 0 {
			return
		}
		add(func() { v.Set(v.Slice(0, v.Len()/2)) })
		add(func() { v.Set(reflect.AppendSlice(v, v)) })
		if v.Type().Elem().Kind() == reflect.Float64 {
			add(func() { // all of them
				x := pickOne(r, worstFloats)
				for i := range v.Len() {
					v.Index(i).SetFloat(x)
				}
			})
			add(func() {
				for i := range v.Len() {
					v.Index(i).SetFloat(1e10 * v.Index(i).Float())
				}
			})
		}
		for range min(n, 4) {
			collect(r, v.Index(r.IntN(n)), changes)
		}
	}
}

func pickOne[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
