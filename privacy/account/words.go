package account

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Words writes a loss of ε at δ.
func Words(epsilon, delta float64) string {
	return fmt.Sprintf("(ε %s, δ %s)", Upward(epsilon), Number(delta))
}

// Number writes a number as people do: 3, 1e-5.
func Number(x float64) string {
	return strings.NewReplacer("e-0", "e-", "e+0", "e").Replace(strconv.FormatFloat(x, 'g', -1, 64))
}

// Upward writes a loss with four digits, and never below what it is.
func Upward(x float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if rounded < x {
		rounded, _ = strconv.ParseFloat(strconv.FormatFloat(rounded+math.Pow(10, math.Floor(math.Log10(x))-3),
			'g', 4, 64), 64)
	}
	return Number(rounded)
}
