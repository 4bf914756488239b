package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failingSource requests a relist and fails during its first watch. Later watches are silent.
type failingSource struct {
	relist         chan<- struct{}
	lists, watches int
}

func (s *failingSource) List(context.Context, func(*Event[int]) error) (string, error) {
	s.lists++
	return "20", nil
}

func (s *failingSource) Watch(ctx context.Context, _ metav1.ListOptions) (Stream[int], error) {
	if s.watches++; s.watches > 1 {
		return silentStream{ctx}, nil
	}
	s.relist <- struct{}{} // returns when the value has been received
	return nil, errors.New("as scripted")
}

func (*failingSource) IdleError(cause error) error { return cause }

type silentStream struct{ ctx context.Context } //nolint:containedctx // of the watch

func (s silentStream) Next(*Event[int]) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

func (silentStream) Close() {}

// The watch fails at the moment of the request, in either order.
func TestReflector_RelistDuringFailure(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			relist := make(chan struct{})
			source := &failingSource{relist: relist}
			emit := func(*Event[int]) error { return nil }
			err := Run(ctx, Options[int]{Source: source, ResourceVersion: "10", Relist: relist, Emit: emit})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 1, source.lists)
		})
	}
}

func TestReflector_ClosedRelistChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		relist := make(chan struct{})
		close(relist)
		source := &failingSource{watches: 1}
		emit := func(*Event[int]) error { return nil }
		err := Run(ctx, Options[int]{Source: source, ListFirst: true, Relist: relist, Emit: emit})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, source.lists)
	})
}
