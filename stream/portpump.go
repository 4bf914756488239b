package stream

import (
	"io"
	"sync"
)

var pumpBuffers = sync.Pool{New: func() any { return new([messageSize]byte) }}

// pump copies until from ends. It returns the error of the side that failed.
func pump(to io.Writer, from io.Reader) (readErr, writeErr error) {
	buffer := pumpBuffers.Get().(*[messageSize]byte)
	defer pumpBuffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
	}
}
