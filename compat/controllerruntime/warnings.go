package controllerruntime

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/transport"
)

// miscellaneousWarning is the only code that API servers use.
const miscellaneousWarning = 299

// warningForwarder passes the server's warnings to a config's handlers.
type warningForwarder struct {
	handler  rest.WarningHandlerWithContext
	fallback rest.WarningHandler // used if handler is nil
}

// warningHandler returns the handlers of a config or, if it has none, controller-runtime's, which logs.
func warningHandler(config *rest.Config) *warningForwarder {
	if config != nil && (config.WarningHandlerWithContext != nil || config.WarningHandler != nil) {
		return &warningForwarder{config.WarningHandlerWithContext, config.WarningHandler}
	}
	return &warningForwarder{handler: log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: false})}
}

// collect returns a ctx for a call and a function that passes on the call's warnings.
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
