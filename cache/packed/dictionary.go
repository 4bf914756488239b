package packed

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// dictionary compresses objects with references into content, of at most maxDictionary bytes. decompress is safe for concurrent
// use, compress is not.
type dictionary struct {
	content []byte
	// encoder has a table of tableBytes after its first use; decoder shares the content and has no table.
	encoder, decoder *s2.Dict
}

// tableBytes is the memory of a dictionary's encoder, in addition to its content.
const tableBytes = 32 << 10

// newDictionary returns a dictionary, or nil if the content is too short.
func newDictionary(content []byte) *dictionary {
	content = append(make([]byte, 0, len(content)+16), content...) // with spare capacity, s2 makes no copy
	d := &dictionary{content: content, encoder: s2.MakeDictManual(content, 0), decoder: s2.MakeDictManual(content, 0)}
	if d.encoder == nil {
		return nil
	}
	return d
}

// compress returns data compressed, in a new slice without spare capacity.
func (d *dictionary) compress(data []byte) []byte {
	b := borrowBuffer(s2.MaxEncodedLen(len(data)))
	defer b.release()
	compressed := d.encoder.Encode(b.bytes, data)
	return append(make([]byte, 0, len(compressed)), compressed...)
}

// decompress decompresses data into a buffer of exactly the decompressed size.
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
