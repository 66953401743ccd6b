package privacy

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"parley/internal/wire"
	"parley/sitestore"
)

// Charge is what a line of the ledger holds. Lines of the first version hold
// nothing but the request, without protection.
type Charge struct {
	Version   int        `cbor:"version,omitempty"`
	At        string     `cbor:"at,omitempty"` // time of the site's clock, RFC 3339, for people: nothing depends on it
	Method    string     `cbor:"method,omitempty"`
	Round     int        `cbor:"round,omitempty"`
	Kind      string     `cbor:"kind,omitempty"`
	Guarantee *Guarantee `cbor:"guarantee,omitempty"`
	Seeded    bool       `cbor:"seeded,omitempty"`
	// Of an opening: the round of the sum, and whose masks were taken away.
	Opens int    `cbor:"opened,omitempty"`
	Set   string `cbor:"set,omitempty"`
	// Of a masked release: who can open the total, on which the charge of its noise rests.
	Trust *Trust `cbor:"trust,omitempty"`
	Request
}

// Trust is what the protection of a masked release rests on.
type Trust struct {
	// who can see the site's own sums if all of them work together
	Openers []string `cbor:"openers" json:"openers"`
	// who may stand in for one of them; "" for nobody
	Spare     string `cbor:"spare,omitempty" json:"spare,omitempty"`
	Quorum    int    `cbor:"quorum" json:"quorum"`       // sites in a total, at least
	Collusion int    `cbor:"collusion" json:"collusion"` // sites whose noise may be known; −1 where there is none
}

const chargeVersion = 2

// trust is that of a request's release; nil if it is not masked.
func (g *Gate) trust(r Request) *Trust {
	if !r.Masked || g.study.Party == nil {
		return nil
	}
	t := &Trust{Quorum: g.study.Party.Quorum, Collusion: g.study.Collusion}
	for _, o := range g.study.Party.Openers {
		t.Openers = append(t.Openers, g.study.Party.Members[o].Name)
	}
	for _, o := range g.study.Party.Spares {
		t.Spare = g.study.Party.Members[o].Name
	}
	return t
}

func (g *Gate) charge(a Ask, r Request) ([]byte, error) {
	b, err := wire.Marshal(Charge{
		Version: chargeVersion, At: g.now().UTC().Format(time.RFC3339), Method: g.study.Method, Round: a.Round,
		Kind:      a.Kind,
		Guarantee: g.study.Guarantee, Seeded: g.seeds(r), Opens: a.Opens, Set: a.Set, Trust: g.trust(r), Request: r,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the charge: %w", err)
	}
	return b, nil
}

// ReadCharge decodes a line. One that makes no sense is an error: it must not
// count for nothing.
func ReadCharge(line sitestore.Reservation) (Charge, error) {
	var c Charge
	err := wire.Unmarshal(line.Request, &c)
	switch {
	case err != nil:
	case c.Version > chargeVersion || c.Version < 0 || c.Version == 1:
		err = fmt.Errorf("its version is %d, this program knows versions up to %d", c.Version, chargeVersion)
	default:
		err = c.Request.Check()
		if err == nil && c.Guarantee != nil {
			err = c.Guarantee.Check()
		}
	}
	if err != nil {
		return Charge{}, fmt.Errorf("line %d of the ledger cannot be read: %w", line.Seq, err)
	}
	return c, nil
}

// CheckStored holds the bytes of a release against the line that charged it:
// they must be of that release and task, and say of themselves that they were
// made as it was charged.
func CheckStored(line sitestore.Reservation, sealed []byte) error {
	c, err := ReadCharge(line)
	if err != nil {
		return err
	}
	o, _, err := open(sealed, nil)
	if err != nil {
		return err
	}
	charged, err := wire.Marshal(c.Request)
	if err != nil {
		return err
	}
	made, err := wire.Marshal(o.Request)
	if err != nil {
		return err
	}
	switch {
	case o.release() != line.Release || o.Study != line.Study:
		return fmt.Errorf("the stored bytes are release %s, and release %s was charged", o.release(), line.Release)
	case o.Task != line.Task:
		return errors.New("the stored bytes answer another task than was charged")
	case !bytes.Equal(charged, made):
		return errors.New("the stored bytes say that they were made from another request than was charged")
	case o.Seeded != c.Seeded:
		return errors.New("the stored bytes and the charge disagree on whether the noise came from a seed")
	}
	return nil
}
