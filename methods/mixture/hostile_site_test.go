package mixture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy/privacytest"
	"parley/study"
)

// A study whose site a answers what it likes: whatever the coordinator takes of it,
// the study goes on to its end with the honest answers of b, through every state's
// encoding.

const smallPrivate = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2, delta: 1e-5}}"

// studied are plans of every form and stage.
func studied() map[string]string {
	all := map[string]string{}
	for kind, options := range hostileOptions {
		all[kind] = fmt.Sprintf(hostilePlan, options, "{protection: none}")
	}
	for i, options := range stagedOptions {
		all[fmt.Sprintf("staged %d", i+1)] = fmt.Sprintf(stagedPlan, options)
	}
	all["classes alone"] = fmt.Sprintf(stagedPlan, "components: 1\n  draws: 64")
	all["own encoders"] = fmt.Sprintf(stagedPlan, "encoder: {shared: false, dimension: 1, hidden: [2], epochs: 1}\n  draws: 64")
	maps.Copy(all, privatePlans())
	return all
}

// privatePlans are those of them that are under differential protection.
func privatePlans() map[string]string {
	staged := strings.Replace(stagedPlan, "{protection: none}", smallPrivate, 1)
	return map[string]string{
		"private":              fmt.Sprintf(hostilePlan, "draws: 64", smallPrivate),
		"private, replace-one": fmt.Sprintf(hostilePlan, "draws: 64", strings.Replace(smallPrivate, "add-remove", "replace-one", 1)),
		"private, scattered":   fmt.Sprintf(hostilePlan, "draws: 64, landmarks: {scattered: 7}", smallPrivate),
		"private, sketch":      fmt.Sprintf(hostilePlan, "sketch: {}, draws: 64", smallPrivate),
		"private classes":      fmt.Sprintf(staged, "components: 1\n  draws: 64"),
		"private codes":        fmt.Sprintf(staged, "encoder: {dimension: 1}\n  draws: 64"),
	}
}

// triesOf is how often a plan is tried: fewer times where each is dear.
func triesOf(name string, n int) int {
	if testkit.Sized(true, false) {
		n /= 5
	}
	if name == "private classes" {
		n = max(n/4, 1)
	}
	return n
}

func parsePlan(t testing.TB, text string) *study.Plan {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rowsOf is what each site of such a plan holds.
func rowsOf(t testing.TB, p *study.Plan) dataset.Source {
	t.Helper()
	if len(p.Subjects) > 0 {
		return patients(t, p)
	}
	return threeRows(t, p)
}

// answerTypes are the bodies of answers, by the kind of their task.
var answerTypes = map[string]func() any{
	taskLandmarks:   func() any { return new(landmarkAnswer) },
	taskFrequencies: func() any { return new(landmarkAnswer) },
	taskEncoder:     func() any { return new(encoderAnswer) },
	taskClassifier:  func() any { return new(linearAnswer) },
	taskWorth:       func() any { return new(worthAnswer) },
}

// spoil makes another answer of an honest one; false if what came of it cannot be
// written.
func spoil(t testing.TB, r *rand.Rand, in method.Contribution) (method.Contribution, bool) {
	t.Helper()
	a := answerTypes[in.Kind]()
	if len(in.Sums) > 0 {
		in.Body = []byte{byte(r.Uint32())}
		return in, true
	}
	if err := method.DecodeAnswer(in, a); err != nil {
		t.Fatal(err)
	}
	mutate(r, a)
	body, err := wire.Marshal(a)
	if err != nil {
		return in, false
	}
	in.Body = body
	return in, true
}

func TestTheStudyEndsWhateverASiteAnswers(t *testing.T) {
	refused, taken := 0, 0
	for _, name := range slices.Sorted(maps.Keys(studied())) {
		p := parsePlan(t, studied()[name])
		data := rowsOf(t, p)
		steps := 1
		for try := range triesOf(name, 20) {
			r := rand.New(rand.NewPCG(uint64(try), 11))
			when, last := r.IntN(steps), 0
			var said []method.Contribution
			x, err := play(t, p, everySite(t, p, data, privacytest.Seeded(5)), func(step int, in method.Contribution) (lies []method.Contribution) {
				if last = step; step != when {
					return nil
				}
				for range 30 {
					if lie, ok := spoil(t, r, in); ok {
						lies = append(lies, lie)
					}
				}
				said = lies
				return lies
			})
			if err != nil {
				what := said[min(x.refused, len(said)-1)]
				a := answerTypes[what.Kind]()
				t.Fatalf("%s, try %d: after answer %d to %q at step %d: %v\n%v %.2000v", name, try, x.refused, what.Kind, when, err, method.DecodeAnswer(what, a), a)
			}
			if refused += x.refused; x.taken {
				taken++
			}
			steps = max(steps, last+1)
		}
	}
	if refused < 100 || taken < 20 {
		t.Errorf("%d answers were refused and %d taken: that is hardly a test", refused, taken)
	}
	t.Logf("%d refused, %d taken", refused, taken)
}

// Whatever bytes a site answers with, in whatever step, and whatever its noised sums
// are: they are refused, or the study ends.
func FuzzAnswers(f *testing.F) {
	names := []string{taskLandmarks, taskFrequencies, "staged 1", "private", "private codes"}
	type plan struct {
		*study.Plan
		data dataset.Source
	}
	var plans []plan
	for i, name := range names {
		p := parsePlan(f, studied()[name])
		plans = append(plans, plan{p, rowsOf(f, p)})
		if _, err := play(f, p, everySite(f, p, plans[i].data), func(step int, in method.Contribution) []method.Contribution {
			f.Add(uint8(i), uint8(step), in.Body)
			return nil
		}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(uint8(3), uint8(9), bytes.Repeat([]byte{0x40, 0, 0, 0, 0, 0, 0, 0}, 13))
	f.Add(uint8(4), uint8(9), bytes.Repeat([]byte{0xbf, 1, 2, 3, 4, 5, 6, 7}, 13))
	f.Fuzz(func(t *testing.T, which, when uint8, data []byte) {
		p := plans[int(which)%len(plans)]
		noise := privacytest.Replaced(func(_ string, exact [][]int64) [][]int64 {
			at := 0
			for _, block := range exact {
				for j := range block {
					var word [8]byte
					at += copy(word[:], data[min(at, len(data)):])
					block[j] = max(int64(binary.BigEndian.Uint64(word[:])), -math.MaxInt64)
				}
			}
			return exact
		})
		_, err := play(t, p.Plan, everySite(t, p.Plan, p.data, noise), func(step int, in method.Contribution) []method.Contribution {
			if step != int(when) {
				return nil
			}
			in.Body = data
			return []method.Contribution{in}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
