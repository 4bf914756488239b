package unstructured

import (
	"bytes"
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/typememory"
)

// Limits bound the memory of decoded values, in bytes: a short JSON may decode to 86 times its length. An object beyond its limit
// is a *[LimitError]. 0 means the default, and less than 0 no limit. The package's functions use the defaults. A connection's
// limits are Limits(conn.MemoryLimits()).
//
// The memory of a value is an upper bound computed from its JSON alone: full and lazy objects have the same limit.
type Limits struct {
	// Object limits a single object, such as an item of a list or an event of a watch. Its JSON may have an eighth of the limit.
	// The default, 320 MiB, admits every object stored by a server.
	Object int64
	// Page limits the objects of a list held together. The default is 2 GiB.
	Page int64
}

// LimitError reports input that exceeds one of the [Limits].
type LimitError struct {
	Limit  int64 // in bytes of memory
	IsPage bool  // the limit is Limits.Page, not Limits.Object
}

func (e *LimitError) Error() string {
	if e.IsPage {
		return fmt.Sprintf("the list needs more than %d MiB of memory (set ListOptions.Limit, or raise MemoryLimits.Page)", e.Limit>>20)
	}
	return fmt.Sprintf("the object needs more than %d MiB of memory (the limit is MemoryLimits.Object)", e.Limit>>20)
}

func (l Limits) object() int64 { return limits.Or(l.Object, limits.DefaultObject) }

func (l Limits) page() int64 { return limits.Or(l.Page, limits.DefaultPage) }

var defaultObjectError = &LimitError{Limit: limits.DefaultObject} // made once: each decoder needs it

func (l Limits) objectError() error {
	if l.object() == limits.DefaultObject {
		return defaultObjectError
	}
	return &LimitError{Limit: l.object()}
}

// borrow returns a Reader of a single object.
func (l Limits) borrow(data []byte) (*jsonread.Reader, error) {
	if int64(len(data)) > limits.JSON(l.object()) {
		return nil, l.objectError()
	}
	r := jsonread.Borrow(data)
	r.Limit(l.object(), l.objectError())
	return r, nil
}

// OfPage returns limits for a list decoded as a single object: Object is l.Page.
func (l Limits) OfPage() Limits { return Limits{Object: l.page(), Page: l.page()} }

// ReadInto appends the body, a single object, to buffer. A body too long for an object within l.Object is a *[LimitError].
func (l Limits) ReadInto(buffer *bytes.Buffer, body io.Reader) error {
	longest := limits.JSON(l.object())
	n, err := buffer.ReadFrom(io.LimitReader(body, longest+1))
	if err == nil && n > longest {
		return l.objectError()
	}
	return err
}

// CheckTyped returns a *[LimitError] if data may take more memory than l.Object in the target type of into. data must be JSON.
// CheckTyped is for decoders of Go types. Their worst case is a long list of empty objects.
func (l Limits) CheckTyped(data []byte, into any) error {
	if typememory.Exceeds(data, into, l.object()) {
		return l.objectError()
	}
	return nil
}

// decode decodes data for a conversion to the target type of into. The decoded value and the conversion must both be within the
// limits.
func (l Limits) decode(data []byte, into any) (any, error) {
	if err := l.CheckTyped(data, into); err != nil {
		return nil, err
	}
	r, err := l.borrow(data)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return r.Value()
}

// pageLimit bounds the items of a list together; nil has no limit.
type pageLimit struct{ limit, size int64 }

// add counts the memory of an item.
func (p *pageLimit) add(size int64) error {
	if p == nil {
		return nil
	}
	if p.size += size; p.size > p.limit {
		return &LimitError{Limit: p.limit, IsPage: true}
	}
	return nil
}
