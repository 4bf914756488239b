package packed

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// dictionaryID is the ID in every frame; which dictionary is meant, an object says by a pointer.
const dictionaryID = 1

// dictionary compresses objects with references into content. Decompressing is safe for concurrent use, compressing is not.
type dictionary struct {
	content []byte // nil for none
	encoder *zstd.Encoder
	decoder func() (*zstd.Decoder, error)
}

// newDictionary returns a dictionary, which makes its decoder when it is first needed.
func newDictionary(content []byte) (*dictionary, error) {
	encoderOpts := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1 << 17),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true),
	}
	decoderOpts := []zstd.DOption{
		zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPacked + 1), zstd.WithDecodeAllCapLimit(true),
	}
	if content != nil {
		encoderOpts = append(encoderOpts, zstd.WithEncoderDictRaw(dictionaryID, content))
		decoderOpts = append(decoderOpts, zstd.WithDecoderDictRaw(dictionaryID, content))
	}
	encoder, err := zstd.NewWriter(nil, encoderOpts...)
	if err != nil {
		return nil, err
	}
	decoder := sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, decoderOpts...) })
	return &dictionary{content: content, encoder: encoder, decoder: decoder}, nil
}

// compress returns data compressed, in memory of its own and no more than it needs.
func (d *dictionary) compress(data []byte) []byte {
	compressed := d.encoder.EncodeAll(data, make([]byte, 0, len(data)/4))
	return append(make([]byte, 0, len(compressed)), compressed...)
}

// decompress returns data decompressed, which must have size bytes.
func (d *dictionary) decompress(data []byte, size int) ([]byte, error) {
	decoder, err := d.decoder()
	if err != nil {
		return nil, err
	}
	decompressed, err := decoder.DecodeAll(data, make([]byte, 0, size))
	if err == nil && len(decompressed) != size {
		err = fmt.Errorf("%d bytes instead of %d", len(decompressed), size)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return decompressed, nil
}
