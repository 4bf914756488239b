package packed

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// dictionary compresses objects with references into content, which is at most maxDictionary bytes. Decompressing is safe for
// concurrent use, compressing is not.
type dictionary struct {
	content []byte
	// encoder has a table of tableBytes once it has compressed an object; decoder, which shares the content, has none.
	encoder, decoder *s2.Dict
}

// tableBytes is the memory of a dictionary that compresses, beside its content.
const tableBytes = 32 << 10

// newDictionary returns a dictionary, nil if the content is too short for one.
func newDictionary(content []byte) *dictionary {
	content = append(make([]byte, 0, len(content)+16), content...) // a capacity with which s2 makes no copy
	d := &dictionary{content: content, encoder: s2.MakeDictManual(content, 0), decoder: s2.MakeDictManual(content, 0)}
	if d.encoder == nil {
		return nil
	}
	return d
}

// compress returns data compressed, in memory of its own and no more than it needs.
func (d *dictionary) compress(data []byte) []byte {
	b := borrowBuffer(s2.MaxEncodedLen(len(data)))
	defer b.release()
	compressed := d.encoder.Encode(b.bytes, data)
	return append(make([]byte, 0, len(compressed)), compressed...)
}

// decompress decompresses data into a buffer, all of which it must fill.
func (d *dictionary) decompress(buffer, data []byte) error {
	size, err := s2.DecodedLen(data)
	if err == nil && size != len(buffer) {
		err = errors.New("the size is not that of the packed object")
	}
	if err == nil {
		_, err = d.decoder.Decode(buffer, data)
	}
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	return nil
}
