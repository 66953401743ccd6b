package method

import (
	"fmt"
	"math"
	"reflect"
)

// Flatten returns the numbers of an answer all of whose fields add up over subjects, in the order of its fields: whole
// and floating-point numbers, flags (1 if set), lists of numbers, and structs of these. The form, a pointer to a struct of the
// same type, says how long lists are and has everything that an answer may have; what the answer lacks counts as 0.
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
