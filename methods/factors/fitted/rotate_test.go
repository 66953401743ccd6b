package fitted

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// rotated is the model that Rotate writes, read back.
func rotated(t testing.TB, m *Model, to string) *Model {
	t.Helper()
	files, _, err := m.Rotate(to)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 || files[0].Name != "model.json" || files[1].Name != "loadings.csv" {
		t.Fatalf("files %+v", files)
	}
	return testkit.Get(LoadModel(files[0].Data))(t)
}

func bytesOf(t testing.TB, m *Model) string {
	t.Helper()
	return string(testkit.Get(m.Encode())(t))
}

func rotationModel(t testing.TB) (*Model, *rand.Rand, factorstest.Truth) {
	r := rand.New(rand.NewPCG(301, 1))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerFeature, 6, 5), 3, 0.5)
	m := modelOf(t, tr, r)
	return m, r, tr
}

// TestARotationChangesAxesAndNothingElse reads scores by the definition y = R x, and holds
// predictions of what is missing to the last bit.
func TestARotationChangesAxesAndNothingElse(t *testing.T) {
	m, r, tr := rotationModel(t)
	rows := factorstest.Lacking(tr.L, tr.Subjects(r, 12), 1)
	rows = append(rows, make([]float64, 11))
	for j := range rows[12] {
		rows[12][j] = math.NaN() // nothing is known of this one
	}
	data := ownUnits(m, rows)
	numbers := func(m *Model) (out [][]float64) { // means of the factors, and their covariance
		r, _, err := m.use(data, Population{})
		testkit.Do(t, err)
		testkit.Get(r.each(t.Context(), data, func(_ *dataset.Row, post *ppca.Posterior, values []float64) error {
			z := make([]float64, 3)
			post.Latent(z, values)
			cov := m.scoreCovariance(post, z)
			m.Rotation.latent(z)
			out = append(out, slices.Concat(z, cov))
			return nil
		}))(t)
		return out
	}
	imputed := func(m *Model) string {
		var b bytes.Buffer
		if _, _, err := m.Impute(context.Background(), data, &b, method.ImputeOptions{Level: 0.9}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for i := range m.Sites { // so many that no axis turns
		m.Sites[i].Subjects = 1 << 50
	}
	before := numbers(m)
	out := rotated(t, m, rotateVarimax)
	if imputed(out) != imputed(m) {
		t.Error("imputed values changed")
	}
	mat := out.Rotation.Matrix
	for i, y := range numbers(out) {
		x := before[i]
		for a := range 3 {
			mean, variance := 0.0, 0.0
			for b := range 3 {
				mean += mat[a][b] * x[b]
				for c := range 3 {
					variance += mat[a][b] * x[3+3*b+c] * mat[a][c]
				}
			}
			if math.Abs(y[a]-mean) > 1e-10 || math.Abs(y[3+4*a]-variance) > 1e-10 {
				t.Fatalf("subject %d, factor %d: %v, variance %v, want %v and %v", i, a+1, y[a], y[3+4*a], mean,
					variance)
			}
		}
		if i == 12 && (math.Abs(y[0]) > 0 || math.Abs(y[3]-1) > 1e-9 || math.Abs(y[4]) > 1e-9) {
			t.Errorf("a subject without values has %v, not the prior", y)
		}
	}
}

// TestRotatedLoadingsDescribeTheSameCovariance holds Λ Λᵀ to W Wᵀ.
func TestRotatedLoadingsDescribeTheSameCovariance(t *testing.T) {
	m, _, _ := rotationModel(t)
	s := rotated(t, m, rotateVarimax).shown()
	for k, v := range s.Views {
		for i, f := range v.Features {
			w := m.Views[k].Features[i]
			cross := 0.0
			for a, x := range f.Loadings {
				cross += x*s.Views[0].Features[0].Loadings[a] - w.Loadings[a]*m.Views[0].Features[0].Loadings[a]
			}
			if math.Abs(cross) > 1e-10 || math.Abs(f.total()-w.total()) > 1e-10 {
				t.Fatalf("%s: a covariance is off by %v; it varies by %v, want %v", f.Name, cross, f.total(), w.total())
			}
		}
	}
	files, _, err := m.Rotate(rotateVarimax)
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("view0,f0,%v,%v,%v,", s.Views[0].Features[0].Mean, s.Views[0].Features[0].Noise,
		s.Views[0].Features[0].Loadings[0]); !strings.Contains(string(files[1].Data), line) {
		t.Errorf("loadings.csv lacks %s", line)
	}
	if header, _, _ := strings.Cut(string(files[1].Data), "\n"); header != "view,feature,mean,noise_variance,factor_1,"+
		"factor_2,factor_3" {
		t.Errorf("loadings.csv has %s", header)
	}
}

func TestRotationsStartFromTheFit(t *testing.T) {
	m, _, _ := rotationModel(t)
	varimax := rotated(t, m, rotateVarimax)
	if bytesOf(t, rotated(t, varimax, rotateVarimax)) != bytesOf(t, varimax) {
		t.Error("varimax after varimax is another rotation")
	}
	if bytesOf(t, rotated(t, varimax, rotateNone)) != bytesOf(t, m) {
		t.Error("none is not the model of the fit")
	}
}

func TestRotationsThatCannotBeAreRefused(t *testing.T) {
	m, _, _ := rotationModel(t)
	for to, want := range map[string]string{"varimx": "did you mean varimax", "promax": "of promax, that of R"} {
		if _, _, err := m.Rotate(to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", to, err)
		}
	}
	for name, change := range map[string]func(r *factorRotation){
		"another method": func(r *factorRotation) { r.Method = "promax" },
		"too few rows":   func(r *factorRotation) { r.Matrix = r.Matrix[1:] },
		"another matrix": func(r *factorRotation) { r.Matrix[1][1] *= 1.001 },
		"no number":      func(r *factorRotation) { r.Matrix[1][1] = 1e308 },
	} {
		out := rotated(t, m, rotateVarimax)
		change(out.Rotation)
		if _, err := LoadModel([]byte(bytesOf(t, out))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
