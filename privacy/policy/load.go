package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"parley/internal/document"
	"parley/problem"
	"parley/study"
)

// version is the version of the policy format that this package reads.
const version = 1

// Load reads and checks the policy in a YAML file. What is wrong with it
// comes back as one problem.List.
func Load(path string) (Policy, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Policy{}, problem.List{{File: path, What: "there is no such file"}}
	}
	if err != nil {
		return Policy{}, fmt.Errorf("reading the policy: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, study.MaxBytes+1))
	if err != nil {
		return Policy{}, fmt.Errorf("reading the policy: %w", err)
	}
	return Parse(path, b)
}

// Parse is [Load] of bytes; name stands for the file in what is
// reported. What a file does not mention is as in the zero Policy: it sets no
// limit, but for protection and the default limit on δ.
func Parse(name string, b []byte) (Policy, error) {
	p := Policy{Protection: Required}
	err := document.Document{Kind: "policy", Plural: "policies", First: "policy"}.Decode(name, b, &p,
		func(missing func(string) bool, report func(path, what, hint string)) {
			switch {
			case missing("policy"):
				report("policy", "missing", fmt.Sprintf("the version of the policy format: policy: %d", version))
			case p.Version != version:
				report("policy", fmt.Sprintf("version %d of the policy format is unknown", p.Version),
					fmt.Sprintf("this program reads version %d", version))
			}
			if p.Lifetime != nil && missing("lifetime.filter") {
				p.Lifetime.Filter = RenyiFilter
			}
			if !missing("max_delta") && p.MaxDelta == 0 {
				report("max_delta", "0 allows no guarantee at all", "leave it out for min(1e-5, 1/(100 n))")
			}
			p.check(report)
		})
	if err != nil {
		return Policy{}, err
	}
	return p, nil
}

// DefaultText is [Default] as a file with comments, to begin one's
// own with.
const DefaultText = `# What this site allows. It outranks every plan.
# A key that is left out sets no limit, but for protection and max_delta.
policy: 1                # version of this format

# site: north            # whose policy this is; any site's if left out

protection: required     # differential privacy or nothing; optional also allows exact numbers

# The two data sets that a guarantee makes hard to tell apart differ by one
# subject more (add-remove), or by one subject's values (replace-one).
# adjacency: add-remove  # either if left out

# The most that one study may promise to give away about one subject.
study: {epsilon: 3, delta: 1e-5}

# The most that all studies together may, for as long as this site's store
# lives. What has been released cannot be taken back.
lifetime: {epsilon: 10, delta: 1e-5, filter: renyi}

# max_delta: 1e-5        # largest δ of a guarantee; min(1e-5, 1/(100 n)) for n subjects if left out

# How many subjects this site has, about, as others may learn: limits on δ and
# minimum.subjects are held against it, and never against the rows, in studies
# with differential privacy. Without it a person holds them against the count.
# size: 2500

minimum:                 # below which this site stays away
  subjects: 50           # at this site
  pattern_subjects: 10   # subjects of a pattern of present views with numbers of its own
  sites: 3               # sites whose contributions a round needs: the plan's quorum

# methods: [factors]      # allowed; all if left out

# per_release: true      # also join studies that promise nothing in total

# Studies that are approved without asking a person: by these methods, with
# differential privacy, and a total for one subject within this budget. Rows have no
# part in that, so size must be set, or max_delta and no minimum.subjects.
# pre_approval: {methods: [factors], study: {epsilon: 1, delta: 1e-5}}
`
