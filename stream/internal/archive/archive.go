// Package archive packs local files into tar archives and unpacks untrusted archives.
//
// # Security
//
// [Unpack] writes through an os.Root, so that no link leads outside, not even a link created by a concurrent program. Further
// rules prevent the creation of links to the outside: nothing is written through a link, and a link's target climbs no higher
// than its own depth, and only at its beginning. So every link ends inside, even through further links. Existing links and files
// are replaced, not written through. [Pack] fails if a file is replaced while it is packed.
//
// # Bounds
//
// Files are streamed. Memory grows only with the number of folders: their permissions are set last because they may forbid
// writing. A limit bounds the total size of files; a sparse file counts with its size, and its holes stay holes.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	progressInterval = 1 << 20 // copied bytes of a file between two reports
	maxName          = 256     // bytes of a name in an error
)

// ErrEmpty is the error of an archive without entries: tar found nothing.
var ErrEmpty = errors.New("the archive is empty")

var errUnsupported = errors.New("it is neither a file, a folder nor a symbolic link")

// Progress is the progress of a copy; stream.CopyProgress has its documentation.
type Progress struct {
	Path              string
	Size, Done, Total int64
}

// meter counts copied bytes and reports them.
type meter struct {
	report   func(Progress) // may be nil
	now      Progress
	reported int64
}

func (m *meter) begin(path string, size int64) {
	m.now.Path = path
	m.now.Size = size
	m.now.Done = 0
	m.reported = 0
	if m.report != nil {
		m.report(m.now)
	}
}

func (m *meter) Write(data []byte) (int, error) {
	m.now.Done += int64(len(data))
	m.now.Total += int64(len(data))
	if m.report != nil && (m.now.Done-m.reported >= progressInterval || m.now.Done == m.now.Size) {
		m.reported = m.now.Done
		m.report(m.now)
	}
	return len(data), nil
}

// entryError adds an entry's name to an error, in printable form.
func entryError(path string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", pathErr.Op, pathErr.Err)
	} else if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		err = fmt.Errorf("%s: %w", linkErr.Op, linkErr.Err)
	}
	return fmt.Errorf("%s: %w", quoted(path), err)
}

// quoted returns a name for an error's text.
func quoted(name string) string { return strconv.Quote(sanitize.Text(name, maxName)) }
