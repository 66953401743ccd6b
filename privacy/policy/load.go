package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

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
	err := study.Document{Kind: "policy", Plural: "policies", First: "policy"}.Decode(name, b, &p, func(missing func(string) bool, report func(path, what, hint string)) {
		switch {
		case missing("policy"):
			report("policy", "missing", fmt.Sprintf("the version of the policy format: policy: %d", version))
		case p.Version != version:
			report("policy", fmt.Sprintf("version %d of the policy format is unknown", p.Version), fmt.Sprintf("this program reads version %d", version))
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
