package federation

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

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
