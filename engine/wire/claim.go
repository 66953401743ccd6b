package wire

import (
	"context"
	"encoding/binary"
	"errors"
)

func claimKey(study string) string { return study + ".coordinator" }

// Claim makes this process the one that coordinates a study: it returns a term
// above every earlier one. Links with a lower term stop when they notice.
func Claim(ctx context.Context, w Wire, k *Key, study string) (term uint64, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		value, revision, err := w.Get(ctx, claimKey(study))
		if err != nil {
			return 0, err
		}
		term = k.Peer().claimed(study, value) + 1
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
