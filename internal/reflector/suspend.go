package reflector

// Suspender is a [Stream] that needs little memory while it waits for an event.
type Suspender interface {
	// Suspend releases the memory of the decoder. It returns false if a part of the next event has been read, or if the stream
	// cannot be suspended.
	Suspend() bool
	// Wait waits for input, or for the end of the stream. It is called after Suspend and before Next.
	Wait()
}

// suspend suspends a watch if nothing of the next event is here yet. Within the initial events, the idle timeout needs the goroutine.
func (r *Reflector[T]) suspend(w *openWatch[T]) bool {
	if !r.CanSuspend || r.version == "" {
		return false
	}
	stream, canSuspend := w.stream.(Suspender)
	if !canSuspend || !stream.Suspend() {
		return false
	}
	r.events = nil
	r.suspended = w
	return true
}

// Wait waits until a suspended watch has input or has ended.
func (r *Reflector[T]) Wait() {
	if stream, canSuspend := r.suspended.stream.(Suspender); canSuspend {
		stream.Wait()
	}
}
