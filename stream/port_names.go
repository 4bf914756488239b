package stream

import (
	"fmt"
	"time"
)

const (
	// maxNames is how many names a dialer remembers.
	maxNames = 256
	// nameAge is for how long it remembers a name that nobody dials.
	nameAge = 10 * time.Minute
)

// resolver returns that of a name: a service or a workload keeps the pod that was chosen for it as long as its name is
// remembered, and the ports of a pod are read once.
func (d *PortDialer) resolver(name string) (*podResolver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.names[name]
	if known == nil {
		at, err := locate(d.Target, name)
		if err != nil {
			return nil, fmt.Errorf("portforward: %w", err)
		}
		d.pruneNames()
		known = newPodResolver(d.Target.Conn(), at)
		d.names[name] = known
	}
	known.used = time.Now()
	return known, nil
}

// pruneNames makes room for another name, with the lock.
func (d *PortDialer) pruneNames() {
	if d.names == nil {
		d.names = map[string]*podResolver{}
	}
	oldest := ""
	for name, known := range d.names {
		if time.Since(known.used) > nameAge {
			delete(d.names, name)
		} else if oldest == "" || known.used.Before(d.names[oldest].used) {
			oldest = name
		}
	}
	if len(d.names) >= maxNames {
		delete(d.names, oldest)
	}
}
