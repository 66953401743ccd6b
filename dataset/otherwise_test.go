package dataset

import "testing"

// What a person reads as a number is told from words, codes and dates.
func TestOtherwise(t *testing.T) {
	for cell, want := range map[string][2]string{
		"9,81":        {"has a decimal comma", "use a decimal point: 9.81"},
		"-9,8":        {"has a decimal comma", "use a decimal point: -9.8"},
		"1,234":       {"has a decimal comma", "use a decimal point: 1.234, or write 1234 if the comma separates thousands"},
		"1.234,5":     {"has a decimal comma and separators of thousands", "write 1234.5"},
		"1,234.5":     {"has separators of thousands", "write 1234.5"},
		"1.234.567":   {"has separators of thousands", "write 1234567"},
		"12 345":      {"has separators of thousands", "write 12345"},
		"12\u202f345": {"has separators of thousands", "write 12345"},
		"12'345":      {"has separators of thousands", "write 12345"},
		"5.1 mg/l":    {"has mg/l behind the number", "write 5.1"},
		"5,1 mg/l":    {"has mg/l behind the number", "write 5.1"},
		"5.1mg/dL":    {"has mg/dL behind the number", "write 5.1"},
		"12 %":        {"has % behind the number", "write 12"},
		"12%":         {"has % behind the number", "write 12"},
		"37.2 °C":     {"has °C behind the number", "write 37.2"},
		"<0.5":        {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such as half of the limit: 0.25"},
		"< 0,5":       {"is a bound and not a value", "leave the cell empty, or agree on a number at all sites, such as half of the limit: 0.25"},
		"−5.1":        {"has a dash in place of the minus sign", "write -5.1"},
		"5.1\u00a0":   {"has a space that is not a usual one", "write 5.1"},
		"2a":          {"", ""},
		"3rd":         {"", ""},
		"high":        {"", ""},
		"1-3":         {"", ""},
		"2020-01-31":  {"", ""},
		"31.01.2020":  {"", ""},
		"1,2,3":       {"", ""},
		"1.5.2":       {"", ""},
		"12,34.5":     {"", ""},
		"12 34":       {"", ""},
		"":            {"", ""},
	} {
		if what, hint := otherwise(cell); what != want[0] || hint != want[1] {
			t.Errorf("%q: got %q, %q, want %q", cell, what, hint, want)
		}
	}
}
