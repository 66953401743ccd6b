package method

import (
	"fmt"
	"math"
	"reflect"
)

// Flatten returns the numbers of an answer all of whose fields add up over subjects, in the order of its fields: whole
// and floating-point numbers, flags (1 if set), lists of numbers, and structs of these. The form, a pointer to a struct
// of the same type, says how long lists are and has everything that an answer may have; what the answer lacks counts as
// 0.
func Flatten(form, answer any) ([]float64, error) {
	var out []float64
	err := flatten(reflect.ValueOf(form), reflect.ValueOf(answer), &out)
	return out, err
}

// Unflatten puts numbers into a form, which is as for [Flatten]. A part that may be absent is, if all of it is 0.
func Unflatten(form any, numbers []float64) error {
	if err := unflatten(reflect.ValueOf(form).Elem(), &numbers); err != nil {
		return err
	}
	if len(numbers) > 0 {
		return fmt.Errorf("%d numbers more than the answer has", len(numbers))
	}
	return nil
}

// flatten appends the numbers of v; those of nothing if v is not valid.
func flatten(form, v reflect.Value, out *[]float64) error {
	switch form.Kind() {
	case reflect.Pointer:
		if form.IsNil() { // a part that no answer has
			return nil
		}
		if v.IsValid() && !v.IsNil() {
			v = v.Elem()
		} else {
			v = reflect.Value{}
		}
		return flatten(form.Elem(), v, out)
	case reflect.Struct:
		for i := range form.NumField() {
			if !form.Type().Field(i).IsExported() {
				continue
			}
			field := reflect.Value{}
			if v.IsValid() {
				field = v.Field(i)
			}
			if err := flatten(form.Field(i), field, out); err != nil {
				return fmt.Errorf("%s: %w", form.Type().Field(i).Name, err)
			}
		}
		return nil
	case reflect.Slice:
		n := form.Len()
		if v.IsValid() && v.Len() != n && v.Len() != 0 {
			return fmt.Errorf("%d entries, where there are %d", v.Len(), n)
		}
		for i := range n {
			entry := reflect.Value{}
			if v.IsValid() && v.Len() > 0 {
				entry = v.Index(i)
			}
			if err := flatten(form.Index(i), entry, out); err != nil {
				return err
			}
		}
		return nil
	}
	x := 0.0
	switch {
	case !v.IsValid():
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	case v.Kind() == reflect.Bool && v.Bool():
		x = 1
	}
	if !form.CanInt() && !form.CanFloat() && form.Kind() != reflect.Bool {
		return fmt.Errorf("a %s is no number that adds up", form.Kind())
	}
	*out = append(*out, x)
	return nil
}

func unflatten(form reflect.Value, numbers *[]float64) error {
	switch form.Kind() {
	case reflect.Pointer:
		if form.IsNil() {
			return nil
		}
		before := *numbers
		if err := unflatten(form.Elem(), numbers); err != nil {
			return err
		}
		for _, x := range before[:len(before)-len(*numbers)] {
			if x != 0 {
				return nil
			}
		}
		form.SetZero()
		return nil
	case reflect.Struct:
		for i := range form.NumField() {
			if form.Type().Field(i).IsExported() {
				if err := unflatten(form.Field(i), numbers); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.Slice:
		for i := range form.Len() {
			if err := unflatten(form.Index(i), numbers); err != nil {
				return err
			}
		}
		if n := form.Len(); n > 0 && form.Index(0).Kind() == reflect.Pointer && form.Index(0).IsNil() {
			form.SetZero()
		}
		return nil
	}
	if len(*numbers) == 0 {
		return fmt.Errorf("fewer numbers than the answer has")
	}
	x := (*numbers)[0]
	*numbers = (*numbers)[1:]
	switch {
	case form.CanInt():
		form.SetInt(int64(math.Round(x)))
	case form.CanFloat():
		form.SetFloat(x)
	default:
		form.SetBool(x != 0)
	}
	return nil
}

// AddSums adds the numbers of an answer to those of a total of the same type, both pointers: what the total lacks it
// gets, and a flag is set that either has.
func AddSums(total, answer any) {
	addSums(reflect.ValueOf(total).Elem(), reflect.ValueOf(answer).Elem())
}

func addSums(to, from reflect.Value) {
	switch {
	case to.Kind() == reflect.Pointer:
		if from.IsNil() {
			return
		}
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		addSums(to.Elem(), from.Elem())
	case to.Kind() == reflect.Struct:
		for i := range to.NumField() {
			if to.Type().Field(i).IsExported() {
				addSums(to.Field(i), from.Field(i))
			}
		}
	case to.Kind() == reflect.Slice:
		if to.Len() == 0 {
			to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		}
		if x, many := numbersOf(from); many {
			sum, _ := numbersOf(to)
			for i, v := range x {
				sum[i] += v
			}
			return
		}
		for i := range from.Len() {
			addSums(to.Index(i), from.Index(i))
		}
	case to.CanInt():
		to.SetInt(to.Int() + from.Int())
	case to.CanFloat():
		to.SetFloat(to.Float() + from.Float())
	default:
		to.SetBool(to.Bool() || from.Bool())
	}
}

// numbersOf are those of a list of floating-point numbers, which share its memory.
func numbersOf(v reflect.Value) (x []float64, is bool) {
	if v.Type().Elem().Kind() == reflect.Float64 {
		return v.Convert(reflect.TypeFor[[]float64]()).Interface().([]float64), true
	}
	return nil, false
}

// CheckSums refuses an answer, a pointer as the form, that has other lists than the form or parts that the form lacks,
// or a number that no rows give: beyond most, or below 0, but for fields tagged sums:"signed". Parts may be absent.
func CheckSums(form, answer any, most float64) error {
	return checkSums(reflect.ValueOf(form), reflect.ValueOf(answer), false, most)
}

func checkSums(form, v reflect.Value, signed bool, most float64) error {
	inside := func(x float64) error {
		if !(x <= most && (x >= 0 || signed && x >= -most)) {
			return fmt.Errorf("a sum of %v, which no rows give", x)
		}
		return nil
	}
	switch kind := form.Kind(); {
	case kind == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if form.IsNil() {
			return fmt.Errorf("sums that were not asked for")
		}
		return checkSums(form.Elem(), v.Elem(), signed, most)
	case kind == reflect.Struct:
		for i := range form.NumField() {
			field := form.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			if err := checkSums(form.Field(i), v.Field(i), field.Tag.Get("sums") == "signed", most); err != nil {
				return fmt.Errorf("%s: %w", field.Name, err)
			}
		}
	case kind == reflect.Slice:
		parts := form.Type().Elem().Kind() == reflect.Pointer
		if v.Len() != form.Len() && !(parts && v.Len() == 0) {
			return fmt.Errorf("%d entries, where there are %d", v.Len(), form.Len())
		}
		if x, many := numbersOf(v); many {
			for _, x := range x {
				if err := inside(x); err != nil {
					return err
				}
			}
			return nil
		}
		for i := range v.Len() {
			if parts && v.Index(i).IsNil() {
				return fmt.Errorf("part %d of %d is missing", i+1, v.Len())
			}
			if err := checkSums(form.Index(i), v.Index(i), signed, most); err != nil {
				return err
			}
		}
	case v.CanInt():
		return inside(float64(v.Int()))
	case v.CanFloat():
		return inside(v.Float())
	}
	return nil
}
