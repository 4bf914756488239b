package cache

import (
	"fmt"
	"runtime/debug"
)

// PanicError says that a function of the caller's panicked.
type PanicError struct {
	// Where names the function and what it was called for: the index "app" of the cache of /api/v1/pods, for shop/web.
	Where string
	// Value is what it panicked with. It is not unwrapped: a panic is never mistaken for the end of a ctx.
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic in %s: %v\n%s", e.Where, e.Value, e.Stack)
}

// callee is which of the caller's functions Run has called, and for which object; the zero callee is none.
type callee struct {
	function, index string
	key             Key
}

// contain makes err, where it is deferred in Run, an error of a panic.
func (c *Cache[T]) contain(err *error) {
	value := recover()
	if value == nil {
		return
	}
	var where string
	switch in := c.callee; {
	case in.function == "":
		where = "Run of the cache of " + c.what()
	case in.index != "":
		where = fmt.Sprintf("%s %q of the cache of %s, for %s", in.function, in.index, c.what(), in.key)
	case in.key != Key{}:
		where = fmt.Sprintf("%s of the cache of %s, for %s", in.function, c.what(), in.key)
	default:
		where = fmt.Sprintf("%s of the cache of %s", in.function, c.what())
	}
	*err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
}
