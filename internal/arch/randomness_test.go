package arch

import (
	"slices"
	"strings"
	"testing"
)

// Version 1 of math/rand is seeded for a whole program, and what is unsafe can write to
// anything, releases among it.
func TestOldRandomnessIsUsedNowhere(t *testing.T) {
	for _, f := range source(t) {
		for _, p := range f.imports {
			if p == "math/rand" || p == "unsafe" && f.pkg != "internal/linalg" {
				t.Errorf("%s imports %s", f.path, p)
			}
		}
	}
}

// Global functions of math/rand/v2 draw from a source that nobody has seeded.
func TestRandomnessIsSeeded(t *testing.T) {
	sources := []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}
	for _, f := range source(t) {
		if f.test {
			continue
		}
		for _, name := range uses(f, "math/rand/v2") {
			if !slices.Contains(sources, name) {
				t.Errorf("%s uses %s of math/rand/v2, whose source is not seeded", f.path, name)
			}
		}
	}
}

// exact lists what the packages between a site's rows and the wire may import and what of
// package math they may name: what scales by powers of two, compares, rounds, or is one
// correctly rounded operation. Whatever else rounds would make noise, or clipped integers,
// that no proof is about.
var exact = map[string]struct{ imports, math, big []string }{
	"privacy/internal/noise": {
		imports: []string{"crypto/aes", "crypto/cipher", "encoding/binary", "errors", "fmt", "io", "math", "math/big",
			"math/bits", "os", "golang.org/x/sys/"},
		math: []string{"Frexp", "Ldexp", "MaxUint64"},
		big:  []string{"Int", "NewInt", "Rat", "NewRat"},
	},
	"privacy/internal/fixed": {
		imports: []string{"errors", "fmt", "math", "math/big", "math/bits", module + "/privacy/internal/noise"},
		math: []string{"Abs", "Frexp", "IsInf", "Ldexp", "MaxFloat64", "MaxUint64", "Nextafter", "RoundToEven",
			"Sqrt", "Sqrt2"},
		big: []string{"Float", "Int", "NewInt", "Rat", "NewRat"}, // Float tells how much noise there is
	},
}

// Noise that protects people comes from the operating system's keys and integers: a
// generator for simulations can be guessed, and noise in floating point leaks by its
// gaps (Mironov 2012).
func TestNoiseIsExact(t *testing.T) {
	looked := map[string]bool{}
	for _, f := range source(t) {
		if f.test || f.pkg != "privacy" && !strings.HasPrefix(f.pkg, "privacy/") {
			continue
		}
		for _, p := range f.imports {
			random := strings.HasPrefix(p, "math/rand") || strings.HasPrefix(p, "gonum.org/v1/gonum/stat")
			if random && f.pkg != "privacy/privacytest" {
				t.Errorf("%s imports %s: in privacy only privacy/internal/noise is random", f.path, p)
			}
		}
		may, ok := exact[f.pkg]
		if !ok {
			continue
		}
		looked[f.pkg] = true
		for _, p := range f.imports {
			if !allowed(may.imports, p) {
				t.Errorf("%s imports %s, which is not on the list of what exact arithmetic may", f.path, p)
			}
		}
		for _, of := range []struct {
			pkg string
			may []string
		}{{"math", may.math}, {"math/big", may.big}} {
			for _, name := range uses(f, of.pkg) {
				if !slices.Contains(of.may, name) {
					t.Errorf("%s uses %s of package %s, which is not on the list of what exact arithmetic may", f.path,
						name, of.pkg)
				}
			}
		}
	}
	for pkg := range exact {
		if !looked[pkg] {
			t.Errorf("package %s was not looked at", pkg)
		}
	}
}

// Noise from a seed protects nobody: no program for sites can draw it.
func TestOnlyTestsSeedPrivacyNoise(t *testing.T) {
	uses, makes := false, false
	for _, f := range source(t) {
		imports := slices.Contains(f.imports, module+"/privacy/privacytest")
		uses = uses || imports
		if imports && !f.test && f.pkg != "method/methodtest" {
			t.Errorf("%s imports privacy/privacytest, which only tests may", f.path)
		}
		if f.test || f.pkg == "privacy/internal/noise" {
			continue
		}
		if calls(f, module+"/privacy/internal/noise", "Simulation") && f.pkg != "privacy" {
			makes = true
			if f.pkg != "privacy/privacytest" {
				t.Errorf("%s makes simulated noise; only privacy/privacytest may", f.path)
			}
		}
	}
	if !uses || !makes {
		t.Error("nothing uses privacytest, or it simulates nothing: this test looks for the wrong names")
	}
}
