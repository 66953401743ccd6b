package study

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

func startOf(n ast.Node) position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return positionOf(m.Values[0].Key.GetToken())
	}
	if kv, ok := n.(*ast.MappingValueNode); ok {
		return positionOf(kv.Key.GetToken())
	}
	return positionOf(n.GetToken())
}

func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

var real = regexp.MustCompile(`^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

// scalar sets v to the value of the node, if it is of v's kind and in its range.
func scalar(n ast.Node, v reflect.Value) bool {
	literal := strings.ReplaceAll(n.GetToken().Value, "_", "")
	decimal := n.GetToken().Type == token.IntegerType
	switch v.Kind() {
	case reflect.String:
		if _, ok := v.Addr().Interface().(*Code); ok && !isContainer(n) {
			v.SetString(n.GetToken().Value) // a number or a word, as it stands in a table
			return true
		}
		s, ok := text(n)
		v.SetString(s)
		return ok
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if ok {
			v.SetBool(b.Value)
		}
		return ok
	case reflect.Int, reflect.Int64:
		if w, ok := v.Addr().Interface().(wordForm); ok {
			if s, ok := text(n); ok {
				return w.FromWord(s)
			}
		}
		i, err := strconv.ParseInt(literal, 10, v.Type().Bits())
		if err == nil && decimal {
			v.SetInt(i)
		}
		return err == nil && decimal
	case reflect.Uint64:
		u, err := strconv.ParseUint(literal, 10, 64)
		if err == nil && decimal {
			v.SetUint(u)
		}
		return err == nil && decimal
	case reflect.Float64:
		// The library takes 1e+3 for text.
		_, quoted := n.(*ast.StringNode)
		quoted = quoted && n.GetToken().Type != token.StringType
		f, err := strconv.ParseFloat(literal, 64) // an error beyond the range of float64
		ok := err == nil && !quoted && real.MatchString(literal)
		if ok {
			v.SetFloat(f)
		}
		return ok
	}
	panic(fmt.Sprintf("study: a plan cannot hold a %v", v.Type()))
}

func expected(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64:
		return "a whole number from 0 to 2⁶⁴−1"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func describe(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "keys with values"
	case ast.SequenceType:
		return "a list"
	}
	if s, ok := text(n); ok {
		return fmt.Sprintf("%.42q", s)
	}
	return n.GetToken().Value
}

func quoteHint(n ast.Node, v reflect.Value) string {
	if v.Kind() == reflect.String && !isContainer(n) {
		return fmt.Sprintf("to mean the text, write it in quotes: %q", n.GetToken().Value)
	}
	return ""
}

// Duration is a length of time as people write it: 90s, 36h, 1h30m; empty for none.
// It is measured by the clock of one machine, and never compared with another's.
type Duration string

// Duration returns the length; 0 if it is empty, or none.
func (d Duration) Duration() time.Duration {
	t, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return t
}

func (c *checker) duration(path string, d Duration, most time.Duration) {
	if d == "" {
		return
	}
	t, err := time.ParseDuration(string(d))
	switch {
	case err != nil:
		c.report(path, fmt.Sprintf("%q is no length of time", string(d)), "such as 90s, 15m or 36h")
	case t <= 0 || t > most:
		c.report(path, fmt.Sprintf("%s is no length of time for this", d), fmt.Sprintf("above 0, and up to %s", most))
	}
}
