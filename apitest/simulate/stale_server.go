package simulate

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// lag is the time for which an API server is behind.
const lag = 3 * time.Second

// writesBehind are the numbers of writes by which the watch cache of an API server may be behind.
var writesBehind = [...]int{1, 2, 3, 4, 6, 8, 11, 15} //nolint:gochecknoglobals // a constant

// connectToServer chooses the API server of a restarted process. Until the end of its lag, lists with resourceVersion=0 have the
// state before the last writes, and no event arrives. Other reads and all writes are not affected: such a server sends them to etcd.
func (p *process) connectToServer() {
	r := p.run
	r.mu.Lock()
	versions := r.versions
	r.mu.Unlock()
	if len(versions) == 0 {
		return
	}
	key := "API server of " + p.name
	key += " #" + strconv.Itoa(r.scheduler.number(key))
	chosen := r.choices.choose(key, alternatives{"stale API server", []int{40, 40, 40, 40, 40, 40, 40, 40}})
	if chosen == 0 {
		return
	}
	back := writesBehind[chosen-1]
	p.behind = versions[max(len(versions)-1-back, 0)]
	p.behindUntil = time.Now().Add(lag)
	r.disturb(lag)
	r.choices.describe(key, fmt.Sprintf("%d writes behind for %s", back, lag))
	r.trace.add(p.name, fmt.Sprintf("connects to an API server that is behind for %s: at resourceVersion %s instead of %s", lag, p.behind, versions[len(versions)-1]))
}

// remainingLag returns the time for which the process's API server is still behind.
func (p *process) remainingLag() time.Duration { return max(time.Until(p.behindUntil), 0) }

// versionBehind returns the resourceVersion of the process's API server, "" for the latest.
func (p *process) versionBehind() string {
	if p.remainingLag() == 0 {
		return ""
	}
	return p.behind
}

// listAt changes a list to that of an old state.
func listAt(req *http.Request, version string) {
	query := req.URL.Query()
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", "Exact")
	req.URL.RawQuery = query.Encode()
}
