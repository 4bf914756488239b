package controller

import (
	"log/slog"

	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/watch"
)

// servedLog logs that a resource is not served any more, and that it is again.
type servedLog struct {
	log       *slog.Logger
	resource  string
	notServed bool
}

// note handles the type of a change of the resource's cache.
func (l *servedLog) note(change watch.EventType) {
	switch {
	case change == dynamic.NotServed:
		l.notServed = true
		l.log.Warn("the server does not serve the resource: its objects are kept", "resource", l.resource)
	case change == dynamic.Synced && l.notServed:
		l.notServed = false
		l.log.Info("the server serves the resource again", "resource", l.resource)
	}
}
