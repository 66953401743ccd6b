package federation

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Secrets lie in files, and travel in e-mails, as text: lines for people that say what
// they are, a line with a mark that says what follows, and the bytes in base64.

// Why [Unarmour] finds no bytes.
var (
	ErrUnmarked = errors.New("the mark is not there")
	errDamaged  = errors.New("what follows the mark is damaged")
)

// Armour writes data as text, under comments, which end with a newline, and a mark. Lines
// have at most width characters of base64; 0 makes one of all.
func Armour(comments, mark string, data []byte, width int) []byte {
	var b strings.Builder
	b.WriteString(comments + mark + "\n")
	text := base64.StdEncoding.EncodeToString(data)
	if width == 0 {
		width = len(text)
	}
	for len(text) > 0 {
		n := min(len(text), width)
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return []byte(b.String())
}

// Unarmour reads what [Armour] wrote under a mark, however an e-mail has broken its
// lines. The error is [ErrUnmarked] or errDamaged.
func Unarmour(mark string, text []byte) ([]byte, error) {
	_, body, ok := strings.Cut(string(text), mark)
	if !ok {
		return nil, ErrUnmarked
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
	if err != nil {
		return nil, errDamaged
	}
	return data, nil
}
