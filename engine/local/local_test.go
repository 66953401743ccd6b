package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/dataset"
	"parley/engine"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/published/fedmvppca"
	"parley/privacy"
	"parley/privacy/policy"
	"parley/problem"
	"parley/sitestore"
	"parley/study"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var methods = method.Registry{factors.Method{}, fedmvppca.Method{}}

const plan = `parley: 1
name: small
sites: [north, centre, south]
quorum: 2
views:
  - {name: clinic, features: [age, weight]}
  - {name: genes, features: [g1, g2]}
subjects: [group]
method: {name: factors, latent: 1}
privacy: {protection: none}
`

// folders writes a folder for each site, 20 subjects in each, and loads a plan
// that is bound to them. South never measured genes.
func folders(t *testing.T) (*study.Plan, string) {
	t.Helper()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 9))
	write := func(name, content string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		testkit.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
	}
	text := plan + "local:\n  sites:\n"
	for _, site := range []string{"north", "centre", "south"} {
		subjects, clinic, genes := "id,group\n", "id,age,weight\n", "id,g1,g2\n"
		for i := range 20 {
			x, id := rng.NormFloat64(), fmt.Sprintf("%s-%02d", site, i)
			subjects += fmt.Sprintf("%s,%d\n", id, i%2)
			clinic += fmt.Sprintf("%s,%.3f,%.3f\n", id, 60+9*x+2*rng.NormFloat64(), 70+8*x+2*rng.NormFloat64())
			genes += fmt.Sprintf("%s,%.3f,%.3f\n", id, 5*x+2*rng.NormFloat64(), 3*x+2*rng.NormFloat64())
		}
		write(site+"/subjects.csv", subjects)
		write(site+"/view_clinic.csv", clinic)
		if site != "south" {
			write(site+"/view_genes.csv", genes)
		}
		text += fmt.Sprintf("    %s: %s\n", site, site)
	}
	write("plan.yaml", text)
	return load(t, dir), dir
}

func load(t *testing.T, dir string) *study.Plan {
	t.Helper()
	return testkit.Get(study.Load(filepath.Join(dir, "plan.yaml"), methods))(t)
}

func bind(t *testing.T, p *study.Plan) *local.Binding {
	t.Helper()
	return testkit.Get(local.Bind(t.Context(), p, nil))(t)
}

func config(t *testing.T, p *study.Plan) local.Config {
	t.Helper()
	return local.Config{Plan: p, Methods: methods, Data: bind(t, p).Data}
}

func TestMemoryAndDiskGiveTheSameStudy(t *testing.T) {
	p, _ := folders(t)
	c := config(t, p)
	inMemory := testkit.Get(local.Run(t.Context(), c))(t)
	c.Dir = t.TempDir()
	onDisk := testkit.Get(local.Run(t.Context(), c))(t)
	resumed := false
	c.Observe = func(e engine.Event) { resumed = resumed || e.Resumed }
	again, err := local.Run(t.Context(), c)
	if err != nil || !resumed {
		t.Fatalf("running it again: resumed %v, %v", resumed, err)
	}
	for name, other := range map[string]*engine.Outcome{"on disk": onDisk.Outcome, "again": again.Outcome} {
		for i, f := range inMemory.Result.Files {
			if !bytes.Equal(f.Data, other.Result.Files[i].Data) {
				t.Errorf("%s: %s differs", name, f.Name)
			}
		}
		for i, r := range inMemory.Rounds {
			for j, x := range r.Sites {
				if x.Release != other.Rounds[i].Sites[j].Release || x.Release == "" {
					t.Errorf("%s: round %d of %s released %q, and %q", name, r.Round, x.Site, x.Release,
						other.Rounds[i].Sites[j].Release)
				}
			}
		}
	}
	for _, path := range []string{local.CheckpointName, "sites/north/site.db", "sites/south/site.db"} {
		if _, err := os.Stat(filepath.Join(c.Dir, filepath.FromSlash(path))); err != nil {
			t.Error(err)
		}
	}
	reports, err := again.SiteReports(t.Context())
	if err != nil || len(reports) != 3 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	var scores bytes.Buffer
	if err := reports["centre"].Result.Files[0].Write(&scores); err != nil ||
		strings.Count(scores.String(), "\ncentre-") != 20 {
		t.Errorf("the scores of centre are not those of its subjects: %v", err)
	}
}

// failing is a site whose data cannot be read from some reading on.
type failing struct {
	dataset.Source
	readings int
}

var errDisk = errors.New("the disk is broken")

func (f *failing) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	if f.readings--; f.readings >= 0 {
		return f.Source.Rows(ctx)
	}
	return func(yield func(*dataset.Row, error) bool) { yield(nil, errDisk) }
}

// Data that cannot be read are trouble of their site, and no departure: the run
// stops, says where, and goes on with every site when they can be read again.
func TestDataThatCannotBeReadStopTheRun(t *testing.T) {
	p, _ := folders(t)
	for readings := range 3 { // before the first task; at it; at the assessment, which reads again
		c := config(t, p)
		c.Dir = t.TempDir()
		sound := c.Data["centre"]
		c.Data["centre"] = &failing{sound, readings}
		if _, err := local.Run(t.Context(), c); !errors.Is(err, errDisk) ||
			!strings.Contains(err.Error(), "site centre") {
			t.Fatalf("%d readings: %v", readings, err)
		}
		c.Data["centre"] = sound
		out, err := local.Run(t.Context(), c)
		if err != nil || len(out.Left) != 0 {
			t.Errorf("%d readings: going on: %v", readings, err)
		}
	}
}

// A site whose rows the method can make nothing of leaves, while there is a quorum.
func TestSiteThatFailsLeavesWhileThereIsAQuorum(t *testing.T) {
	p, _ := folders(t)
	c := config(t, p)
	nobody := testkit.Get(dataset.NewTable(p.Schema(), nil))(t)
	c.Data["centre"] = nobody
	var left []string
	c.Observe = func(e engine.Event) {
		if e.Left != nil && strings.Contains(e.Left.Reason.Error(), "no subject has any value") {
			left = append(left, e.Left.Site)
		}
	}
	out := testkit.Get(local.Run(t.Context(), c))(t)
	if want := []string{"centre"}; !slices.Equal(left, want) || !slices.Equal(out.Left, want) ||
		out.Shares["centre"] != nil || len(out.Shares) != 2 {
		t.Errorf("left: %v and %v; %d shares", left, out.Left, len(out.Shares))
	}
	if x := out.Rounds[0].Sites[1]; x.Left != "it failed" {
		t.Errorf("others read that %q", x.Left)
	}
	reports, err := out.SiteReports(t.Context())
	if err != nil || len(reports) != 2 || reports["centre"] != nil {
		t.Errorf("%d reports, %v", len(reports), err)
	}
	c.Data["south"] = nobody
	if _, err := local.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no subject has any value") ||
		!strings.Contains(err.Error(), "quorum is 2") {
		t.Errorf("two sites fail: %v", err)
	}
}

func TestTwoRunsCannotShareADirectory(t *testing.T) {
	p, _ := folders(t)
	c := config(t, p)
	c.Dir = t.TempDir()
	tried := false
	c.Observe = func(engine.Event) {
		if tried {
			return
		}
		tried = true
		other := c
		other.Observe = nil
		if _, err := local.Run(t.Context(), other); err == nil {
			t.Error("a second run began in the same directory")
		}
	}
	if _, err := local.Run(t.Context(), c); err != nil || !tried {
		t.Fatalf("tried %v, %v", tried, err)
	}
}

func TestRunsThatCannotBegin(t *testing.T) {
	p, _ := folders(t)
	c := config(t, p)
	delete(c.Data, "south")
	if _, err := local.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "site south has no data") {
		t.Errorf("no data: %v", err)
	}
	c.Methods = nil
	if _, err := local.Run(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), `method "factors" is not known`) {
		t.Errorf("no method: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := local.Run(ctx, config(t, p)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// change replaces a text in a file below dir.
func change(t *testing.T, dir, name, old, new string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%q is not in %s: %v", old, name, err)
	}
	testkit.Do(t, os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644))
}

func TestEverySiteIsToldWhatItsDataLack(t *testing.T) {
	p, dir := folders(t)
	change(t, dir, "north/view_clinic.csv", "id,age,weight", "id,age,mass")
	change(t, dir, "centre/view_genes.csv", "id,g1,g2", "id,g1,g3")
	_, err := local.Bind(t.Context(), p, nil)
	if list := (problem.List)(nil); !errors.As(err, &list) || len(list) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"north", "weight", "centre", "g2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestUnreadableRowsOfAllSitesAreListed(t *testing.T) {
	p, dir := folders(t)
	change(t, dir, "north/view_clinic.csv", "north-03,", "north-03,about ")
	change(t, dir, "south/view_clinic.csv", "south-07,", "south-07,x")
	_, err := local.Bind(t.Context(), p, nil)
	if list := (problem.List)(nil); !errors.As(err, &list) || len(list) != 2 || list[0].Line != 5 || list[1].Line != 9 {
		t.Fatalf("got %v", err)
	}
}

func TestPlanWithoutDataCannotBeBound(t *testing.T) {
	p := testkit.Get(study.Parse("plan.yaml", []byte(plan), methods))(t)
	if _, err := local.Bind(t.Context(), p, nil); err == nil ||
		!strings.Contains(err.Error(), "does not say where this process finds data") {
		t.Fatalf("got %v", err)
	}
}

func TestFingerprintFollowsDataAndSplit(t *testing.T) {
	p, dir := folders(t)
	first := bind(t, p).Fingerprint()
	if again := bind(t, p).Fingerprint(); again != first || len(first) != 64 {
		t.Errorf("the same data: %q and %q", first, again)
	}
	change(t, dir, "south/view_clinic.csv", "south-07,", "south-07,1")
	if bind(t, p).Fingerprint() == first {
		t.Error("another value, the same fingerprint")
	}
	seen := map[string]string{}
	for _, split := range []string{"{scenario: IID}", "{scenario: IID, seed: 2}", "{scenario: IID, by: group}",
		"{scenario: G, by: group}"} {
		text := plan + "local: {data: north, split: " + split + "}\n"
		testkit.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(text), 0o644))
		b := bind(t, load(t, dir))
		if other, ok := seen[b.Fingerprint()]; ok {
			t.Errorf("splits %s and %s have one fingerprint", split, other)
		}
		seen[b.Fingerprint()] = split
		subjects := map[string]bool{}
		for _, data := range b.Data {
			for row, err := range data.Rows(t.Context()) {
				if err != nil || subjects[row.ID] {
					t.Fatalf("split %s: subject %s again, %v", split, row.ID, err)
				}
				subjects[row.ID] = true
			}
		}
		if len(b.Data) != 3 || len(subjects) != 20 {
			t.Errorf("split %s: %d subjects at %d sites", split, len(subjects), len(b.Data))
		}
	}
}

func TestConstantsAndViewsThatNobodyShares(t *testing.T) {
	p, dir := folders(t)
	constant := func(site, value string) {
		path := filepath.Join(dir, site, "view_genes.csv")
		data := testkit.Get(os.ReadFile(path))(t)
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		for i, line := range lines[1:] {
			id, _, _ := strings.Cut(line, ",")
			lines[i+1] = fmt.Sprintf("%s,%s,%d", id, value, i)
		}
		testkit.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	constant("north", "4")
	b := bind(t, p)
	if !strings.Contains(b.Notes.Error(), "view genes, feature g1: it does not vary at north") {
		t.Errorf("notes: %v", b.Notes)
	}
	constant("centre", "4")
	if _, err := local.Bind(t.Context(), p, nil); err == nil ||
		!strings.Contains(err.Error(), "view genes, feature g1: it is 4 for every subject of every site") {
		t.Errorf("constant everywhere: %v", err)
	}
	constant("centre", "5") // constant at each of them, and yet not everywhere
	b = bind(t, p)
	if !strings.Contains(b.Notes.Error(), "view genes, feature g1: it does not vary at north, centre") {
		t.Errorf("notes: %v", b.Notes)
	}
}

func TestStudiesShareStoresAndPoliciesRefuse(t *testing.T) {
	p, dir := folders(t)
	c := config(t, p)
	c.Dir, c.Stores = filepath.Join(dir, "one"), filepath.Join(dir, "stores")
	testkit.Get(local.Run(t.Context(), c))(t)
	if _, err := os.Stat(local.StorePath(local.StoresIn(c.Dir), "north")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store stands in the results too: %v", err)
	}
	change(t, dir, "plan.yaml", "name: small", "name: second")
	second := config(t, load(t, dir))
	second.Dir, second.Stores = filepath.Join(dir, "two"), c.Stores
	testkit.Get(local.Run(t.Context(), second))(t)
	store := testkit.Get(sitestore.Open(local.StorePath(c.Stores, "north")))(t)
	defer store.Close()
	for _, plan := range []*study.Plan{p, second.Plan} {
		digest := testkit.Get(plan.Digest())(t)
		if r, ok, err := store.Release(digest.String() + "/north/1"); err != nil || !ok || r.Sealed == nil {
			t.Errorf("study %s is not in the shared store: %v, %v", plan.Name, ok, err)
		}
	}
	strict := policy.Default()
	c.Dir, c.Stores, c.Policy = "", "", &strict
	if _, err := local.Run(t.Context(), c); !errors.Is(err, privacy.ErrRefused) {
		t.Errorf("a strict policy: %v", err)
	}
}
