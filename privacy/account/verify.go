package account

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"parley/internal/vectors"
)

// VectorSchema is how the "schema" of test vectors for this package begins.
const VectorSchema = "dp-vectors/"

// Verify runs a file of published test vectors of differential privacy (schema
// "dp-vectors/1") through this package and compares every entry with the
// tolerance that testdata/README.md states: what must be an upper bound may be
// above the published value by a little, and never below. An unknown schema or
// kind is an error, and so is a file that cannot be run.
func Verify(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		VectorSchema + "1": vectors.Format((*casesJSON).verify)})
}

type casesJSON struct {
	Schema string            `json:"schema"`
	Set    string            `json:"set"`
	Orders []float64         `json:"rdp_orders"`
	Cases  []json.RawMessage `json:"cases"`
}

func (f *casesJSON) verify(list *vectors.List) error {
	v := verification{list: list, orders: f.Orders}
	for i, c := range f.Cases {
		if err := v.run(c); err != nil {
			return fmt.Errorf("case %d: %w", i+1, err)
		}
	}
	return nil
}

// verification collects the checks of one file.
type verification struct {
	list   *vectors.List
	orders []float64 // Rényi orders of all "epsilon" cases
}

func (v *verification) run(c json.RawMessage) error {
	var head caseHead
	if err := json.Unmarshal(c, &head); err != nil {
		return err
	}
	run, ok := map[string]func(*verification, string, []byte) error{
		"epsilon":               caseOf[epsilonCase],
		"rdp":                   caseOf[rdpCase],
		"calibrate_gaussian":    caseOf[calibrateGaussianCase],
		"calibrate_composition": caseOf[calibrateCompositionCase],
		"calibrate_rounds":      caseOf[calibrateRoundsCase],
		"zcdp":                  caseOf[zcdpCase],
		"composition_theorems":  caseOf[theoremsCase],
		"clip":                  caseOf[clipCase],
		"sensitivity":           caseOf[sensitivityCase],
	}[head.Kind]
	if !ok {
		return fmt.Errorf("%s is of unknown kind %q", head.ID, head.Kind)
	}
	if err := run(v, head.ID, c); err != nil {
		return fmt.Errorf("%s: %w", head.ID, err)
	}
	return nil
}

// caseHead is what every case has.
type caseHead struct {
	ID   string   `json:"id"`
	Kind string   `json:"kind"`
	Tags []string `json:"tags"`
}

// caseOf reads a case whose keys are those of C, and runs it.
func caseOf[C any, P interface {
	*C
	verify(v *verification, id string) error
}](v *verification, id string, file []byte) error {
	c := new(C)
	if err := vectors.Decode(file, c); err != nil {
		return err
	}
	return P(c).verify(v, id)
}

// between demands least ≤ got ≤ most, want being somewhere in it.
func (v *verification) between(entry string, want, got, least, most float64) {
	c := vectors.Check{Entry: entry, Want: fmt.Sprintf("%v in [%v, %v]", want, least, most), Got: fmt.Sprint(got),
		OK: least <= got && got <= most}
	c.WorstError = math.Abs(got-want) / math.Abs(want)
	c.Tolerance = max(most-want, want-least) / math.Abs(want)
	*v.list = append(*v.list, c)
}

func (v *verification) close(entry string, want, got, tolerance float64) {
	v.list.Float(entry, want, got, vectors.Tolerance{Rel: tolerance})
}

type adjacencyJSON Adjacency

// UnmarshalJSON takes the spelling of the vectors.
func (a *adjacencyJSON) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"add_remove"`:
		*a = adjacencyJSON(AddRemove)
	case `"replace_one"`:
		*a = adjacencyJSON(ReplaceOne)
	default:
		return fmt.Errorf("unknown adjacency %s", b)
	}
	return nil
}

// mechanismJSON is a mechanism with a clipping bound of its own.
type mechanismJSON struct {
	Type  string  `json:"type"`
	SD    float64 `json:"sd"`
	Scale float64 `json:"scale"`
	Clip  float64 `json:"clip"`
	Q     float64 `json:"q"`
	Count int     `json:"count"`
}

func compositionOf(list []mechanismJSON) (ms []Mechanism, err error) {
	for _, j := range list {
		m := Mechanism{Kind: Gaussian, Noise: j.SD / j.Clip, Rate: 1, Diameter: 2, Count: j.Count}
		switch j.Type {
		case "gaussian":
		case "laplace":
			m.Kind, m.Noise = Laplace, j.Scale/j.Clip
		case "poisson_gaussian":
			m.Rate = j.Q
		default:
			return nil, fmt.Errorf("mechanism of unknown type %q", j.Type)
		}
		ms = append(ms, m)
	}
	return ms, nil
}

type epsilonCase struct {
	caseHead
	Adjacency  adjacencyJSON   `json:"adjacency"`
	Mechanisms []mechanismJSON `json:"mechanisms"`
	Delta      float64         `json:"delta"`
	Expect     struct {
		Epsilon       float64 `json:"epsilon"`
		Improved      float64 `json:"epsilon_rdp_improved"`
		ImprovedOrder float64 `json:"rdp_improved_order"`
		Classic       float64 `json:"epsilon_rdp_classic"`
		ClassicOrder  float64 `json:"rdp_classic_order"`
		Check         struct {
			Epsilon float64 `json:"epsilon"`
			Delta   float64 `json:"delta"`
		} `json:"delta_check"`
	} `json:"expect"`
}

func (c *epsilonCase) verify(v *verification, id string) error {
	ms, err := compositionOf(c.Mechanisms)
	if err != nil {
		return err
	}
	want, a := c.Expect, Adjacency(c.Adjacency)
	epsilon, err := Epsilon(ms, a, c.Delta)
	if err != nil {
		return err
	}
	most := 1.01*want.Epsilon + 1e-3
	if slices.Contains(c.Tags, "tiny-delta") {
		most = max(most, want.Improved*(1+1e-6))
	}
	v.between(id+".epsilon", want.Epsilon, epsilon, want.Epsilon*(1-1e-6)-1e-9, most)
	delta, err := Delta(ms, a, want.Check.Epsilon)
	if err != nil {
		return err
	}
	v.between(id+".delta_check", want.Check.Delta, delta, want.Check.Delta*(1-1e-5), 1.02*want.Check.Delta+1e-13)

	rdp, err := RDP(ms, a, v.orders)
	if err != nil {
		return err
	}
	improved, order, err := ConvertRDP(v.orders, rdp, c.Delta)
	if err != nil {
		return err
	}
	v.close(id+".epsilon_rdp_improved", want.Improved, improved, 1e-6)
	v.close(id+".rdp_improved_order", want.ImprovedOrder, order, 0)
	classic, order, err := ConvertRDPClassic(v.orders, rdp, c.Delta)
	v.close(id+".epsilon_rdp_classic", want.Classic, classic, 1e-6)
	v.close(id+".rdp_classic_order", want.ClassicOrder, order, 0)
	return err
}

type rdpCase struct {
	caseHead
	Adjacency  adjacencyJSON   `json:"adjacency"`
	Mechanisms []mechanismJSON `json:"mechanisms"`
	Expect     struct {
		Orders []float64 `json:"orders"`
		RDP    []float64 `json:"rdp"`
	} `json:"expect"`
}

func (c *rdpCase) verify(v *verification, id string) error {
	ms, err := compositionOf(c.Mechanisms)
	if err != nil {
		return err
	}
	got, err := RDP(ms, Adjacency(c.Adjacency), c.Expect.Orders)
	v.list.Floats(id+".rdp", c.Expect.RDP, got, vectors.Tolerance{Rel: 1e-8})
	return err
}

type calibrateGaussianCase struct {
	caseHead
	Epsilon     float64 `json:"epsilon"`
	Delta       float64 `json:"delta"`
	Sensitivity float64 `json:"l2_sensitivity"`
	Expect      struct {
		Analytic     float64 `json:"sigma_analytic"`
		Zhao         float64 `json:"sigma_zhao"`
		Classic      float64 `json:"sigma_classic"`
		Valid        bool    `json:"classic_is_valid"`
		DeltaZhao    float64 `json:"delta_actual_zhao"`
		DeltaClassic float64 `json:"delta_actual_classic"`
	} `json:"expect"`
}

func (c *calibrateGaussianCase) verify(v *verification, id string) error {
	analytic, err := AnalyticGaussian(c.Epsilon, c.Delta)
	if err != nil {
		return err
	}
	zhao, _, err := ZhaoGaussian(c.Epsilon, c.Delta)
	if err != nil {
		return err
	}
	classic, proven, err := ClassicGaussian(c.Epsilon, c.Delta)
	if err != nil {
		return err
	}
	v.close(id+".sigma_analytic", c.Expect.Analytic, analytic*c.Sensitivity, 1e-9)
	v.close(id+".sigma_zhao", c.Expect.Zhao, zhao*c.Sensitivity, 1e-9)
	v.close(id+".sigma_classic", c.Expect.Classic, classic*c.Sensitivity, 1e-9)
	v.list.Equal(id+".classic_is_valid", c.Expect.Valid, proven)
	for _, x := range []struct {
		name         string
		want, factor float64
	}{{"delta_actual_zhao", c.Expect.DeltaZhao, zhao}, {"delta_actual_classic", c.Expect.DeltaClassic, classic}} {
		got, err := GaussianDelta(x.factor, c.Epsilon)
		if err != nil {
			return err
		}
		v.close(id+"."+x.name, x.want, got, 1e-9)
	}
	return nil
}

type calibrateCompositionCase struct {
	caseHead
	Q         float64       `json:"q"`
	Count     int           `json:"count"`
	Adjacency adjacencyJSON `json:"adjacency"`
	Epsilon   float64       `json:"epsilon"`
	Delta     float64       `json:"delta"`
	Expect    struct {
		Noise float64 `json:"noise_multiplier"`
	} `json:"expect"`
}

func (c *calibrateCompositionCase) verify(v *verification, id string) error {
	m := Mechanism{Kind: Gaussian, Noise: 1, Rate: c.Q, Diameter: 2, Count: c.Count}
	got, err := Scale([]Mechanism{m}, Adjacency(c.Adjacency), Budget{c.Epsilon, c.Delta})
	v.between(id+".noise_multiplier", c.Expect.Noise, got, c.Expect.Noise*(1-1e-6), 1.005*c.Expect.Noise)
	return err
}

type calibrateRoundsCase struct {
	caseHead
	Views   int     `json:"views"`
	Rounds  int     `json:"rounds"`
	Each    float64 `json:"per_mechanism_delta"`
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
	Expect  struct {
		Epsilon  float64 `json:"per_mechanism_epsilon"`
		Gaussian float64 `json:"gaussian_sd_over_sensitivity"`
		Laplace  float64 `json:"laplace_scale_over_sensitivity"`
		Basic    float64 `json:"basic_composition_epsilon"`
	} `json:"expect"`
}

func (c *calibrateRoundsCase) verify(v *verification, id string) error {
	want := c.Expect
	each, err := ScaleRounds(c.Views, c.Rounds, c.Each, Budget{c.Epsilon, c.Delta})
	if err != nil {
		return err
	}
	v.between(id+".per_mechanism_epsilon", want.Epsilon, each, 0.99*want.Epsilon, want.Epsilon*(1+1e-6))
	// What follows from ε, at the published one.
	ms, err := Rounds(c.Views, c.Rounds, Budget{want.Epsilon, c.Each})
	if err != nil {
		return err
	}
	v.close(id+".gaussian_sd_over_sensitivity", want.Gaussian, ms[0].Noise/2, 1e-9)
	v.close(id+".laplace_scale_over_sensitivity", want.Laplace, ms[1].Noise/2, 1e-9)
	basic, err := Basic([]Releases{{Budget{want.Epsilon, c.Each}, ms[0].Count}, {Budget{want.Epsilon, 0}, ms[1].Count}})
	v.close(id+".basic_composition_epsilon", want.Basic, basic.Epsilon, 1e-9)
	return err
}
