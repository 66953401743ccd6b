package wire

import (
	"context"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	encoding "parley/internal/wire"
	"parley/privacy/masks"
)

// Key is what one end of a study signs and opens messages with. It never
// connects to anything: a broker that asked for a signature of its own choosing
// would get none from it.
type Key struct {
	sign ed25519.PrivateKey
	open hpke.PrivateKey
}

// Peer is the public half of a [Key].
type Peer struct {
	verify ed25519.PublicKey
	seal   hpke.PublicKey
}

// keyBytes is a key or a peer as it is kept.
type keyBytes struct {
	_    struct{} `cbor:",toarray"`
	Sign []byte   // seed, or public key: 32 bytes
	Open []byte   // of X25519: 32 bytes
}

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// NewKey makes a key.
func NewKey() (*Key, error) {
	_, sign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	open, err := kem().GenerateKey()
	if err != nil {
		return nil, err
	}
	return &Key{sign, open}, nil
}

// MarshalBinary encodes the secret.
func (k *Key) MarshalBinary() ([]byte, error) {
	open, err := k.open.Bytes()
	if err != nil {
		return nil, err
	}
	return encoding.Marshal(keyBytes{Sign: k.sign.Seed(), Open: open})
}

// ParseKey decodes what [Key.MarshalBinary] wrote.
func ParseKey(data []byte) (*Key, error) {
	b, err := parseKeyBytes(data)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	open, err := kem().NewPrivateKey(b.Open)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	return &Key{ed25519.NewKeyFromSeed(b.Sign), open}, nil
}

func parseKeyBytes(data []byte) (b keyBytes, err error) {
	if err := encoding.Unmarshal(data, &b); err != nil {
		return b, err
	}
	if len(b.Sign) != ed25519.SeedSize {
		return b, errors.New("it is too short or too long")
	}
	return b, nil
}

// Peer returns what others may know of the key.
func (k *Key) Peer() Peer {
	return Peer{k.sign.Public().(ed25519.PublicKey), k.open.PublicKey()}
}

// MarshalBinary encodes the peer, for those who are to know it.
func (p Peer) MarshalBinary() ([]byte, error) {
	return encoding.Marshal(keyBytes{Sign: p.verify, Open: p.seal.Bytes()})
}

// Masks is the key as secure sums use it: the same two secrets, for what is marked as another purpose.
func (k *Key) Masks() (masks.Keys, error) {
	secret, err := k.open.Bytes()
	if err != nil {
		return masks.Keys{}, err
	}
	open, err := ecdh.X25519().NewPrivateKey(secret)
	return masks.Keys{Sign: k.sign, Open: open}, err
}

// Masks is the public half of [Key.Masks], of a site of that name.
func (p Peer) Masks(site string) (masks.Member, error) {
	open, err := ecdh.X25519().NewPublicKey(p.seal.Bytes())
	return masks.Member{Name: site, Verify: p.verify, Open: open}, err
}

// Name is a short name of the key, for records and for comparing by telephone: the
// first 16 bytes of the SHA-256 of its encoding, in hexadecimal.
func (p Peer) Name() string {
	data, err := p.MarshalBinary()
	if err != nil {
		panic(err) // two byte strings
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// ParsePeer decodes what [Peer.MarshalBinary] wrote.
func ParsePeer(data []byte) (Peer, error) {
	b, err := parseKeyBytes(data)
	if err != nil {
		return Peer{}, fmt.Errorf("reading a public key: %w", err)
	}
	seal, err := kem().NewPublicKey(b.Open)
	if err != nil {
		return Peer{}, fmt.Errorf("reading a public key: %w", err)
	}
	return Peer{b.Sign, seal}, nil
}

// statement is what a signature is over: the words say what for, so that one
// made for one purpose serves no other.
func statement(purpose string, data []byte) []byte {
	return append([]byte("parley "+purpose+"\x00"), data...)
}

// Sign signs data for a purpose, which is to be a word of its own.
func (k *Key) Sign(purpose string, data []byte) []byte {
	return ed25519.Sign(k.sign, statement(purpose, data))
}

// Verify says whether the peer has signed data for a purpose.
func (p Peer) Verify(purpose string, data, signature []byte) error {
	if p.verify == nil || !ed25519.Verify(p.verify, statement(purpose, data), signature) {
		return errForged
	}
	return nil
}

// signed is a message within its seal.
type signed struct {
	_         struct{} `cbor:",toarray"`
	Signature []byte
	Payload   []byte
}

// Seal signs a payload and seals it to a peer. where is the key of the value
// that it is put in: moved to another one it is worth nothing.
func (k *Key) Seal(to Peer, where string, payload []byte) ([]byte, error) {
	receiver, err := to.MarshalBinary()
	if err != nil {
		return nil, err
	}
	data, err := encoding.Marshal(signed{
		Signature: ed25519.Sign(k.sign, statement("message 1 "+where+" "+string(receiver), payload)), Payload: payload,
	})
	if err != nil {
		return nil, err
	}
	return hpke.Seal(to.seal, hpke.HKDFSHA256(), hpke.AES256GCM(), statement("seal 1", []byte(where)), data)
}

var errForged = errors.New("it was not signed by the other end of the study")

// Open opens a message that [Key.Seal] made, and verifies who signed it.
func (k *Key) Open(from Peer, where string, message []byte) ([]byte, error) {
	if len(message) > encoding.MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, above the limit of %d", len(message), encoding.MaxBytes)
	}
	data, err := hpke.Open(k.open, hpke.HKDFSHA256(), hpke.AES256GCM(), statement("seal 1", []byte(where)), message)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", err)
	}
	var s signed
	if err := encoding.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	own, err := k.Peer().MarshalBinary()
	if err != nil {
		return nil, err
	}
	if !ed25519.Verify(from.verify, statement("message 1 "+where+" "+string(own), s.Payload), s.Signature) {
		return nil, errForged
	}
	return s.Payload, nil
}

func claimKey(study string) string { return study + ".coordinator" }

// Claim makes this process the one that coordinates a study: it returns a term
// above every earlier one, and above one that a site has seen. Links with a lower term stop
// when they notice. A wire that has lost its values knows of no earlier term, so terms follow
// the clock, in milliseconds since 1970; where that was ahead, sites tell of it ([EarlierError]).
func Claim(ctx context.Context, w Wire, k *Key, study string, seen uint64) (term uint64, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		value, revision, err := w.Get(ctx, claimKey(study))
		if err != nil {
			return 0, err
		}
		term = max(k.Peer().claimed(study, value)+1, seen+1, uint64(max(0, time.Now().UnixMilli())))
		if _, err = w.Put(ctx, claimKey(study), k.claiming(study, term), revision); !errors.Is(err, ErrMoved) {
			return term, err
		}
	}
}

// claim puts a term again that the wire has lost.
func (k *Key) claim(ctx context.Context, w Wire, study string, term uint64) error {
	value, revision, err := w.Get(ctx, claimKey(study))
	if err != nil || k.Peer().claimed(study, value) >= term {
		return err
	}
	_, err = w.Put(ctx, claimKey(study), k.claiming(study, term), revision)
	if errors.Is(err, ErrMoved) {
		return nil // whoever it was, the next look tells
	}
	return err
}

func (k *Key) claiming(study string, term uint64) []byte {
	value := binary.BigEndian.AppendUint64(nil, term)
	return append(value, k.Sign("term 1 "+study, value)...)
}

// claimed reads a claim; 0 if it is not one that the coordinator has signed.
func (p Peer) claimed(study string, value []byte) uint64 {
	if len(value) < 8 || p.Verify("term 1 "+study, value[:8], value[8:]) != nil {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}
