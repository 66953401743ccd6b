package federation

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"parley/engine/wire"
	encoding "parley/internal/wire"
)

// Invitation lets somebody join as a site. It works once, until it expires.
// Whoever holds it may join in the site's place, so it travels as a password
// does.
type Invitation struct {
	Version int      `cbor:"version"`
	ID      string   `cbor:"id"`
	Site    string   `cbor:"site"`
	URLs    []string `cbor:"urls"`
	// the certificates that the broker's is held against, as PEM; empty: the system's
	Roots       []byte `cbor:"roots"`
	Coordinator []byte `cbor:"coordinator"` // its public key, a wire.Peer
	JWT         string `cbor:"jwt"`         // of a guest, and
	Seed        []byte `cbor:"seed"`        // what it connects with
	Secret      []byte `cbor:"secret"`      // a wire.Key, which signs the request to join
	Expires     int64  `cbor:"expires"`     // seconds since 1970, by the coordinator's clock
}

const invitationVersion = 1

// invitationMark begins the line before an invitation's bytes.
const invitationMark = "parley-invitation-"

// NewID returns a random name for an invitation.
func NewID() string {
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Encode writes the invitation as a text that survives an e-mail.
func (i *Invitation) Encode() ([]byte, error) {
	i.Version = invitationVersion
	data, err := encoding.Marshal(i)
	if err != nil {
		return nil, err
	}
	comments := fmt.Sprintf("# An invitation for site %s to join a coordinator of Parley. It works once, until %s.\n",
		i.Site, time.Unix(i.Expires, 0).UTC().Format("2 January 2006 15:04 UTC")) +
		"# Whoever has it can join in the site's place: send it as you would send a password.\n" +
		"# To use it: parley site join FILE\n"
	return Armour(comments, invitationMark, data, 76), nil
}

// maxInvitation limits the text of an invitation.
const maxInvitation = 64 << 10

// ParseInvitation reads what [Invitation.Encode] wrote.
func ParseInvitation(text []byte) (*Invitation, error) {
	if len(text) > maxInvitation {
		return nil, fmt.Errorf("it has %d bytes, and an invitation has at most %d", len(text), maxInvitation)
	}
	data, err := Unarmour(invitationMark, text)
	switch {
	case errors.Is(err, ErrUnmarked):
		return nil, errors.New("this is not an invitation\n  hint: an invitation has a line " + invitationMark + "2")
	case err != nil:
		return nil, fmt.Errorf("the invitation is not whole: %w\n  hint: ask for it again, or copy all of its lines",
			err)
	}
	var i Invitation
	if err := encoding.Unmarshal(data, &i); err != nil {
		return nil, fmt.Errorf("the invitation is not whole: %w", err)
	}
	if i.Version != invitationVersion {
		return nil, fmt.Errorf("the invitation has version %d, and this program knows %d", i.Version, invitationVersion)
	}
	if _, err := hex.DecodeString(i.ID); err != nil || i.ID == "" || i.Site == "" || len(i.URLs) == 0 {
		return nil, errors.New("the invitation lacks its name, its site, or an address")
	}
	_, bad := wire.ParsePeer(i.Coordinator)
	if _, err = wire.ParseKey(i.Secret); cmp.Or(bad, err) != nil {
		return nil, fmt.Errorf("the invitation: %w", cmp.Or(bad, err))
	}
	return &i, nil
}

// Request is what somebody with an invitation asks for: to be known by these
// keys, whose secrets stay where they were made.
type Request struct {
	_       struct{} `cbor:",toarray"`
	Peer    []byte   // signs and opens: a wire.Peer
	User    string   // connects
	Program Program
}

// Grant is the coordinator's answer.
type Grant struct {
	_           struct{} `cbor:",toarray"`
	Refused     string   // why not; the rest is then empty
	Certificate []byte   // encoded
	JWT         string   // for the user
}

func requestPlace(id string) string { return "join " + id }
func grantPlace(id string) string   { return "joined " + id }

// Ask seals a request to the coordinator.
func (i *Invitation) Ask(r Request) ([]byte, error) {
	secret, err := wire.ParseKey(i.Secret)
	if err != nil {
		return nil, err
	}
	coordinator, err := wire.ParsePeer(i.Coordinator)
	if err != nil {
		return nil, err
	}
	return seal(secret, coordinator, requestPlace(i.ID), r)
}

// OpenRequest opens a request to join at the coordinator; guest is the public
// half of the invitation's secret.
func OpenRequest(k *wire.Key, guest wire.Peer, id string, message []byte) (r Request, err error) {
	if err = open(k, guest, requestPlace(id), message, &r); err == nil {
		_, err = wire.ParsePeer(r.Peer)
	}
	return r, err
}

// SealGrant seals the answer to a request to whoever made it.
func SealGrant(k *wire.Key, to wire.Peer, id string, g Grant) ([]byte, error) {
	return seal(k, to, grantPlace(id), g)
}

// OpenGrant opens the answer with the key that the request named.
func (i *Invitation) OpenGrant(k *wire.Key, message []byte) (g Grant, err error) {
	coordinator, err := wire.ParsePeer(i.Coordinator)
	if err != nil {
		return g, err
	}
	err = open(k, coordinator, grantPlace(i.ID), message, &g)
	return g, err
}

// Certificate is the coordinator's word for who a site is. The site shows it with
// each [Hello], so that a coordinator that has lost everything but its key knows
// the site again.
type Certificate struct {
	Site      string `cbor:"site" json:"site"`
	Serial    uint64 `cbor:"serial" json:"serial"` // a later one takes the place of an earlier
	Peer      []byte `cbor:"peer" json:"peer"`     // a wire.Peer
	User      string `cbor:"user" json:"user"`     // what it connects with
	Signature []byte `cbor:"signature" json:"signature"`
}

const certificatePurpose = "certificate 1"

func (c Certificate) unsigned() ([]byte, error) {
	c.Signature = nil
	return encoding.Marshal(c)
}

// Issue signs a certificate.
func (c *Certificate) Issue(k *wire.Key) error {
	data, err := c.unsigned()
	if err == nil {
		c.Signature = k.Sign(certificatePurpose, data)
	}
	return err
}

// Verify checks that the coordinator has issued the certificate, and returns the
// site's key.
func (c Certificate) Verify(coordinator wire.Peer) (wire.Peer, error) {
	data, err := c.unsigned()
	if err != nil {
		return wire.Peer{}, err
	}
	if err := coordinator.Verify(certificatePurpose, data, c.Signature); err != nil {
		return wire.Peer{}, fmt.Errorf("the certificate: %w", err)
	}
	return wire.ParsePeer(c.Peer)
}

// Encode and ParseCertificate are for keeping and sending.
func (c Certificate) Encode() ([]byte, error) { return encoding.Marshal(c) }

// ParseCertificate decodes a certificate; it does not verify it.
func ParseCertificate(data []byte) (c Certificate, err error) {
	err = encoding.Unmarshal(data, &c)
	return c, err
}

// Secrets lie in files, and travel in e-mails, as text: lines for people that say what
// they are, a line with a mark that says what follows, the bytes in base64, and a checksum
// of all from the mark on, since people copy them by hand.

// Why [Unarmour] finds no bytes.
var (
	ErrUnmarked = errors.New("the mark is not there")
	errDamaged  = errors.New("what follows the mark is damaged")
)

const (
	// summed and unsummed end a mark. Those who wrote without a checksum wrote the latter.
	summed, unsummed = "2", "1"
	sumMark          = "checksum-" // has a character that is not of base64
)

// Armour writes data as text, under comments, which end with a newline, and a mark. Lines
// have at most width characters of base64; 0 makes one of all.
func Armour(comments, mark string, data []byte, width int) []byte {
	var b strings.Builder
	b.WriteString(comments + mark + summed + "\n")
	text := base64.StdEncoding.EncodeToString(data)
	sum := hexadecimal(crc32.ChecksumIEEE([]byte(mark + summed + text)))
	if width == 0 {
		width = len(text)
	}
	for len(text) > 0 {
		n := min(len(text), width)
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	b.WriteString(sumMark + sum + "\n")
	return []byte(b.String())
}

// Unarmour reads what [Armour] wrote under a mark, however an e-mail has broken its
// lines, and what older programs wrote. The error is [ErrUnmarked], or says what is damaged.
func Unarmour(mark string, text []byte) ([]byte, error) {
	_, body, _ := strings.Cut(string(text), mark)
	body, old := strings.CutPrefix(body, unsummed)
	rest, now := strings.CutPrefix(body, summed)
	if !old && !now {
		return nil, ErrUnmarked
	}
	body = strings.Join(strings.Fields(rest), "")
	if now && !old {
		var sum string
		body, sum, _ = strings.Cut(body, sumMark)
		if err := verify(mark+summed, body, sum); err != nil {
			return nil, err
		}
	}
	data, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, errDamaged
	}
	return data, nil
}

// verify holds text against its checksum. If one letter makes the difference, the error
// says which.
func verify(mark, text, sum string) error {
	own := crc32.ChecksumIEEE([]byte(mark + text))
	stated, err := strconv.ParseUint(sum, 16, 32)
	switch {
	case sum == hexadecimal(own):
		return nil
	case err != nil || len(sum) != 8:
		return fmt.Errorf("%w: its last line is no checksum", errDamaged)
	}
	// The checksum is linear: what a wrong letter adds to it depends on the difference, and on
	// how many letters follow.
	adds := *crc32.IEEETable
	for i := len(text) - 1; i >= 0; i-- {
		for d := 1; d < 256; d++ {
			if adds[d] == own^uint32(stated) {
				return fmt.Errorf("%w: letter %d is wrong, %q", errDamaged, i+1, text[i])
			}
			adds[d] = adds[d]>>8 ^ crc32.IEEETable[byte(adds[d])]
		}
	}
	return fmt.Errorf("%w: its checksum does not hold", errDamaged)
}

func hexadecimal(sum uint32) string { return fmt.Sprintf("%08x", sum) }
