package controllerruntime

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/transport"
)

// miscellaneousWarning is the code in an API server's warning headers.
const miscellaneousWarning = 299

// warningForwarder passes the server's warnings to a config's handlers.
type warningForwarder struct {
	handler  rest.WarningHandlerWithContext
	fallback rest.WarningHandler // used if handler is nil
}

// warningHandler returns the handlers of a config, by default controller-runtime's logging handler.
func warningHandler(config *rest.Config) *warningForwarder {
	if config != nil && (config.WarningHandlerWithContext != nil || config.WarningHandler != nil) {
		return &warningForwarder{config.WarningHandlerWithContext, config.WarningHandler}
	}
	return &warningForwarder{handler: log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: false})}
}

// collect returns a context for a call and a function that forwards the call's warnings.
func (w *warningForwarder) collect(ctx context.Context) (context.Context, func()) {
	collecting, warnings := transport.CollectWarnings(ctx)
	return collecting, func() {
		for _, text := range warnings.All() {
			if w.handler != nil {
				w.handler.HandleWarningHeaderWithContext(ctx, miscellaneousWarning, "-", text)
			} else {
				w.fallback.HandleWarningHeader(miscellaneousWarning, "-", text)
			}
		}
	}
}
