package privacy

import (
	"fmt"
	"time"

	"parley/internal/wire"
	"parley/sitestore"
)

// charge is what a line of the ledger holds. Lines of the first version hold
// nothing but the request, without protection.
type charge struct {
	Version   int        `cbor:"version,omitempty"`
	At        string     `cbor:"at,omitempty"` // time of the site's clock, RFC 3339, for people: nothing depends on it
	Method    string     `cbor:"method,omitempty"`
	Round     int        `cbor:"round,omitempty"`
	Kind      string     `cbor:"kind,omitempty"`
	Guarantee *Guarantee `cbor:"guarantee,omitempty"`
	Seeded    bool       `cbor:"seeded,omitempty"`
	Request
}

const chargeVersion = 2

func (g *Gate) charge(a Ask, r Request) ([]byte, error) {
	b, err := wire.Marshal(charge{
		Version: chargeVersion, At: g.now().UTC().Format(time.RFC3339), Method: g.study.Method, Round: a.Round, Kind: a.Kind,
		Guarantee: g.study.Guarantee, Seeded: g.seeds(r), Request: r,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the charge: %w", err)
	}
	return b, nil
}

// readCharge decodes a line. One that makes no sense is an error: it must not
// count for nothing.
func readCharge(line sitestore.Reservation) (charge, error) {
	var c charge
	err := wire.Unmarshal(line.Request, &c)
	switch {
	case err != nil:
	case c.Version > chargeVersion || c.Version < 0 || c.Version == 1:
		err = fmt.Errorf("its version is %d, this program knows versions up to %d", c.Version, chargeVersion)
	default:
		err = c.Request.check()
		if err == nil && c.Guarantee != nil {
			err = c.Guarantee.Check()
		}
	}
	if err != nil {
		return charge{}, fmt.Errorf("line %d of the ledger cannot be read: %w", line.Seq, err)
	}
	return c, nil
}
