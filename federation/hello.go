package federation

import (
	"bytes"
	"cmp"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"parley/engine/wire"
	encoding "parley/internal/wire"
)

// The words in which a site says where it stands with a study.
const (
	Pending   = "pending"   // a person at the site has not decided
	Approved  = "approved"  // it answers
	Computing = "computing" // it is at work on a task
	Refused   = "refused"   // it will not take part
	Withdrawn = "withdrawn" // it answers no more, but sends again what it has sent, to a coordinator that has lost it
	Unable    = "unable"    // something has to be mended there first: its program, its data, its store
	Done      = "done"      // it has what it may have
	Closed    = "closed"    // the coordinator posts it no more; said by the site to its own people only
)

// Standing is where a site stands with one study.
type Standing struct {
	_     struct{} `cbor:",toarray"`
	Study string   // hexadecimal digest of the plan
	Word  string   // one of the words above
	Text  string   // why, as far as the coordinator may know it
}

// Hello is what a site says of itself, again whenever something changes.
type Hello struct {
	Program Program `cbor:"program"`
	// Nonce is that of the last board that the site has seen, Life that of the site's
	// process, and Count rises with each of its hellos: so an old one that is delivered
	// again says nothing.
	Nonce   []byte     `cbor:"nonce"`
	Life    []byte     `cbor:"life"`
	Count   uint64     `cbor:"count"`
	Studies []Standing `cbor:"studies"`
	// Wants are studies that have ended, of whose results the site's people ask for those that were not sent along.
	Wants []string `cbor:"wants,omitempty"`
	// Bye says that it is the last of the process.
	Bye bool `cbor:"bye,omitempty"`
}

// greeting is a hello as it is put: whoever opens it learns from the certificate
// who should have signed it.
type greeting struct {
	_           struct{} `cbor:",toarray"`
	Certificate []byte
	Sealed      []byte
}

// seal encodes a value and seals it to whoever may read it at a place.
func seal(k *wire.Key, to wire.Peer, place string, v any) ([]byte, error) {
	data, err := encoding.Marshal(v)
	if err != nil {
		return nil, err
	}
	return k.Seal(to, place, data)
}

// open decodes to v, a pointer, what somebody has sealed.
func open(k *wire.Key, from wire.Peer, place string, message []byte, v any) error {
	data, err := k.Open(from, place, message)
	if err != nil {
		return err
	}
	return encoding.Unmarshal(data, v)
}

// Greet seals a hello to the coordinator.
func Greet(k *wire.Key, coordinator wire.Peer, certificate []byte, site string, h Hello) ([]byte, error) {
	sealed, err := seal(k, coordinator, HelloKey(site), h)
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(greeting{Certificate: certificate, Sealed: sealed})
}

// OpenHello opens a hello of a site, and returns the certificate by which it is
// known, which the coordinator itself has issued.
func OpenHello(k *wire.Key, site string, message []byte) (h Hello, c Certificate, err error) {
	var g greeting
	if err := encoding.Unmarshal(message, &g); err != nil {
		return h, c, err
	}
	if c, err = ParseCertificate(g.Certificate); err != nil {
		return h, c, err
	}
	if c.Site != site {
		return h, c, fmt.Errorf("it carries the certificate of site %q", c.Site)
	}
	peer, err := c.Verify(k.Peer())
	if err != nil {
		return h, c, err
	}
	if err := open(k, peer, HelloKey(site), g.Sealed, &h); err != nil {
		return h, c, err
	}
	return h, c, h.check()
}

// check limits what a site may say.
func (h *Hello) check() error {
	if len(h.Studies) > maxPosted || len(h.Wants) > maxPosted || len(h.Program.Methods) > maxPosted ||
		len(h.Nonce) > maxNonce || len(h.Life) > maxNonce {
		return errors.New("it is too long")
	}
	if len(h.Program.Version)+len(h.Program.Platform) > maxText {
		return errors.New("it says too much of its program")
	}
	for i := range h.Studies {
		s := &h.Studies[i]
		if len(s.Study) != studyDigits || len(s.Word) > maxNonce {
			return errors.New("it speaks of a study that cannot be one")
		}
		s.Text = wire.Words(s.Text)
	}
	h.Program.Version, h.Program.Platform = wire.Words(h.Program.Version), wire.Words(h.Program.Platform)
	return nil
}

// studyDigits is the length of a study's digest in hexadecimal.
const studyDigits = 64

// Posted is a study that waits for a site's decision or its answers.
type Posted struct {
	_     struct{} `cbor:",toarray"`
	Study string
	Plan  []byte // encoded, and until [OpenBoard] compressed; empty once the site has it
	// Needs says what the site must install to take part; empty if its program fits.
	Needs string
	// Stopped says why the study does not go on; empty while it does.
	Stopped string
}

// maxPosted limits the studies of a coordinator that run at once, maxText what is
// said of each, and maxNonce what is drawn at random.
const (
	maxPosted = 1000
	maxText   = wire.MostWords
	maxNonce  = 64
)

// Board is what the coordinator posts for one site.
type Board struct {
	Program Program  `cbor:"program"`
	Nonce   []byte   `cbor:"nonce"`         // of this life of the coordinator
	Count   uint64   `cbor:"count"`         // rises with each board of it for the site: an earlier one says nothing
	JWT     string   `cbor:"jwt,omitempty"` // renewed credentials
	Studies []Posted `cbor:"studies"`
	// Ask rises when every process of the site is to say a hello at once. Second is the
	// life of one that is refused, because another serves as the site and is alive.
	Ask    uint64 `cbor:"ask,omitempty"`
	Second []byte `cbor:"second,omitempty"`
	// Handed are the results that the site's last hello has asked for.
	Handed *Handed `cbor:"handed,omitempty"`
}

// Handed are results of a study; without files if the coordinator has none for the site.
type Handed struct {
	_     struct{} `cbor:",toarray"`
	Study string
	Files []File
}

// Post seals a board to a site.
func Post(k *wire.Key, to wire.Peer, site string, b Board) ([]byte, error) {
	if len(b.Studies) > maxPosted {
		return nil, fmt.Errorf("%d studies at once: at most %d", len(b.Studies), maxPosted)
	}
	return seal(k, to, BoardKey(site), b)
}

// OpenBoard opens a board at the site.
func OpenBoard(k *wire.Key, coordinator wire.Peer, site string, message []byte) (b Board, err error) {
	if err := open(k, coordinator, BoardKey(site), message, &b); err != nil {
		return b, err
	}
	if len(b.Studies) > maxPosted || len(b.Nonce) > maxNonce || len(b.Second) > maxNonce {
		return b, errors.New("it is too long")
	}
	for i := range b.Studies {
		p := &b.Studies[i]
		if digits, err := hex.DecodeString(p.Study); err != nil || len(digits) != studyDigits/2 ||
			p.Study != strings.ToLower(p.Study) {
			return b, errors.New("it posts a study that cannot be one") // its digest names a folder
		}
		p.Needs, p.Stopped = wire.Words(p.Needs), wire.Words(p.Stopped)
		if len(p.Plan) > 0 {
			if p.Plan, err = expand(p.Plan, encoding.MaxValue); err != nil {
				return b, fmt.Errorf("the plan of study %.12s: %w", p.Study, err)
			}
		}
	}
	b.Program.Version, b.Program.Platform = wire.Words(b.Program.Version), wire.Words(b.Program.Platform)
	if b.Handed != nil {
		return b, checkFiles(b.Handed.Files)
	}
	return b, nil
}

// VersionMismatch says what a site must install to take part in a study whose method the
// coordinator has at a revision; empty if it fits.
func VersionMismatch(coordinator, site Program, method string) string {
	want, got := coordinator.Methods[method], site.Methods[method]
	switch {
	case coordinator.Protocol != site.Protocol:
		return fmt.Sprintf("install parley %s, with revision %d of method %s: the coordinator speaks version %d of "+
			"the protocol, and parley %s speaks version %d", coordinator.Version, want, method, coordinator.Protocol,
			site.Version, site.Protocol)
	case got == 0:
		return fmt.Sprintf("install parley %s, with revision %d of method %s: parley %s has no such method",
			coordinator.Version, want, method, site.Version)
	case want != got:
		return fmt.Sprintf("install parley %s: this study is computed with revision %d of method %s, and parley %s "+
			"has revision %d", coordinator.Version, want, method, site.Version, got)
	}
	return ""
}

// Ending is what a site gets when a study has ended.
type Ending struct {
	_     struct{} `cbor:",toarray"`
	Share []byte   // for the site's half of the method, to report to its own people
	Files []File   // of the coordinator's results: the model, and what else everybody may read
	Words string   // why there is nothing more; empty at a good end
}

// File is one of the results, which are compressed once for all sites.
type File struct {
	_      struct{} `cbor:",toarray"`
	Name   string   `json:"name"` // relative, with forward slashes
	Size   int      `json:"size"`
	Digest []byte   `json:"sha256"`
	Packed []byte   `json:"packed,omitempty"` // compressed; empty where it was not sent along: the site may ask for it
}

// sharedFiles are those of the coordinator's results that sites get.
var sharedFiles = []string{"plan.yaml", "metrics.json", "privacy.json", "report.html"}

// Shared says whether a file of the coordinator's results is for the sites.
func Shared(name string) bool {
	return slices.Contains(sharedFiles, name) || strings.HasPrefix(name, "model/")
}

// PackFile compresses one of the results.
func PackFile(name string, data []byte) File {
	sum := sha256.Sum256(data)
	return File{Name: name, Size: len(data), Digest: sum[:], Packed: Compress(data)}
}

// SentAlong are all files, but only with the smallest that have room in so many bytes together. The others are named.
func SentAlong(all []File, most int) []File {
	some := slices.Clone(all)
	slices.SortStableFunc(some, func(a, b File) int { return cmp.Compare(len(a.Packed), len(b.Packed)) })
	for i := range some {
		if most -= len(some[i].Packed); most < 0 {
			some[i].Packed = nil
		}
	}
	return some
}

// Data is what the file holds, if it was sent, and is what its digest says.
func (f File) Data() ([]byte, error) {
	data, err := expand(f.Packed, f.Size)
	if sum := sha256.Sum256(data); err == nil && !bytes.Equal(sum[:], f.Digest) {
		err = errors.New("it is damaged: it has another digest")
	}
	if err != nil {
		return nil, fmt.Errorf("file %.200q of the results: %w", f.Name, err)
	}
	return data, nil
}

// Compress makes data smaller.
func Compress(data []byte) []byte {
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, flate.BestCompression) // the level is one
	z.Write(data)                                      // to memory
	z.Close()
	return b.Bytes()
}

// expand returns what was compressed, if that is not more than most bytes.
func expand(packed []byte, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return data, err
}

// Encode makes the bytes of an ending.
func (e Ending) Encode() ([]byte, error) { return encoding.Marshal(e) }

// ParseEnding reads what [Ending.Encode] wrote. Files that are not for sites, or
// whose names lead elsewhere, are an error.
func ParseEnding(data []byte) (e Ending, err error) {
	if err = encoding.Unmarshal(data, &e); err == nil {
		e.Words = wire.Words(e.Words)
		err = checkFiles(e.Files)
	}
	if err != nil {
		return Ending{}, fmt.Errorf("the end of the study: %w", err)
	}
	return e, nil
}

// checkFiles limits what may be named, and what it may come to once it is expanded.
func checkFiles(list []File) error {
	room := encoding.MaxBytes
	for _, f := range list {
		if f.Name != path.Clean(f.Name) || strings.ContainsAny(f.Name, `\:`) || !Shared(f.Name) {
			return fmt.Errorf("it names a file %.200q, which is not one of the results", f.Name)
		}
		if len(f.Packed) == 0 {
			continue
		}
		if f.Size < 0 || f.Size > room {
			return fmt.Errorf("its files have more bytes than the limit of %d", encoding.MaxBytes)
		}
		room -= f.Size
	}
	return nil
}
