package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"parley/engine"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/study"
)

// Who approves a study; see [Approval]. By rule and by file nobody looks at the rows, so
// [Host.Approve] reads none where everything that leaves is noised.
const (
	ByPerson = "a person"
	ByRule   = "the policy's rule"     // see [policy.PreApproval]
	ByFile   = "the file approved.txt" // of a site whose people decide elsewhere
)

// Approval says that a site's people, or a rule of theirs, allow a study, and
// what they looked at. It is good as long as all of that stands: see
// [Host.Approved]. Digests are hexadecimal SHA-256.
type Approval struct {
	Plan        string    `json:"plan"`        // its digest
	Coordinator string    `json:"coordinator"` // digest of the public key
	Policy      string    `json:"policy"`      // see [policy.Policy.Digest]
	Data        string    `json:"data"`        // fingerprint of every row; empty if nobody has looked at them
	Mapping     string    `json:"mapping"`     // of the site's mapping.yaml; empty if there is none
	Method      string    `json:"method"`
	Revision    int       `json:"revision"` // of the method in this program
	At          time.Time `json:"at"`       // UTC, whole seconds
	By          string    `json:"by"`       // such as ByPerson or ByRule
}

// Approve approves a study as everything stands now, for the coordinator with
// that public key. It keeps and charges nothing: the caller keeps the approval.
//
// It is refused, by an error that wraps [privacy.ErrRefused], if policy or ledger
// would not let the site take part, or if the policy's rule is to approve what it
// does not cover; what is wrong with the data is another error. A study that has
// been charged here before is not refused for what it has cost, but by [engine.ErrChanged]
// if its data or the revision of its method are others.
func (h *Host) Approve(ctx context.Context, p *study.Plan, coordinator []byte, by string) (*Approval, error) {
	look := by != ByRule && by != ByFile
	m, s, rules, err := h.studyOf(ctx, p, look)
	if err != nil {
		return nil, err
	}
	look = look || !s.Noised()
	if by == ByRule {
		if ok, why := privacy.PreApproves(h.Policy, s); !ok {
			return nil, fmt.Errorf("%w: pre_approval: %s", privacy.ErrRefused, why)
		}
	}
	charged, err := ledger.Read(h.Store)
	if err != nil {
		return nil, err
	}
	cost, err := h.Methods.Cost(p)
	if err != nil {
		return nil, err
	}
	a, err := h.Admits(charged, p, s, rules, cost)
	if err != nil {
		return nil, err
	}
	if !a.Admitted {
		return nil, a.Refusal()
	}
	if err := h.keep(m, s, look, look && a.Begun); err != nil {
		return nil, err
	}
	now := h.approval(m, s, coordinator)
	if look {
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		now.Data = hex.EncodeToString(data[:])
	}
	now.At, now.By = time.Now().UTC().Truncate(time.Second), by
	return now, nil
}

// Approved says whether an approval is good for a study as everything stands now:
// plan, coordinator's key, policy, data, mapping, and method with its revision. The data are not
// looked at where everything that leaves is noised: that they have changed, and are not
// only written again, would be seen. An error that wraps [engine.ErrChanged] names all that have changed.
func (h *Host) Approved(ctx context.Context, p *study.Plan, coordinator []byte, a *Approval) error {
	m, s, _, err := h.studyOf(ctx, p, false)
	if err != nil {
		return err
	}
	now, e := h.approval(m, s, coordinator), &changedError{}
	if a.Plan != now.Plan {
		e.add("the approval is of another plan", "approve this plan if it is wanted, too")
	}
	if a.Coordinator != now.Coordinator {
		e.add("the coordinator's key has changed since this study was approved",
			"ask the coordinator's people why, by another way than this program; approve it again if all is well")
	}
	if a.Policy != now.Policy {
		e.add("the policy has changed since this study was approved", "approve it again under the new one")
	}
	if !s.Noised() {
		data, err := s.Data()
		if err != nil {
			return err
		}
		now.Data = hex.EncodeToString(data[:])
	}
	if now.Data != "" && a.Data != now.Data {
		e.add("the data have changed since this study was approved",
			"approve it again; if it has begun, put the data back as they were: new data are for a new study")
	}
	if a.Mapping != now.Mapping {
		e.add("the site's mapping.yaml has changed since this study was approved",
			"see what it makes of the data, by parley data describe, and approve the study again; if it has begun, "+
				"put the mapping back as it was")
	}
	if a.Method != now.Method || a.Revision != now.Revision {
		e.add(fmt.Sprintf("the program's revision of method %s has changed since this study was approved: it was %d, "+
			"and is %d", now.Method, a.Revision, now.Revision),
			"approve it again; if it has begun, go on with the parley that began it")
	}
	if len(e.what) == 0 {
		return nil
	}
	return e
}

// approval is what an approval would be bound to now, but for the data.
func (h *Host) approval(m method.Method, s privacy.Study, coordinator []byte) *Approval {
	key, policy := sha256.Sum256(coordinator), h.Policy.Digest()
	a := &Approval{
		Plan: s.Digest, Coordinator: hex.EncodeToString(key[:]), Policy: hex.EncodeToString(policy[:]),
		Method: m.Name(), Revision: m.Revision(),
	}
	if d, ok := h.Data.(interface{ Mapping() string }); ok {
		a.Mapping = d.Mapping()
	}
	return a
}

// changedError is [engine.ErrChanged], and says what.
type changedError struct{ what, hints []string }

func (e *changedError) add(what, hint string) {
	e.what, e.hints = append(e.what, what), append(e.hints, hint)
}

// Error gives all that have changed one line, and each a hint.
func (e *changedError) Error() string {
	return strings.Join(e.what, "; ") + "\n  hint: " + strings.Join(e.hints, "\n  hint: ")
}

// Unwrap makes the error [engine.ErrChanged].
func (e *changedError) Unwrap() error { return engine.ErrChanged }
