//go:build unix

package sandbox

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anykind/anykind/sandbox/internal/build"
)

// loopback is the only address anything listens on.
const loopback = "127.0.0.1"

// describeMembers works out every process: its address, arguments and how to
// tell that it is ready. ports has one for each, and two for etcd.
func (c *Cluster) describeMembers(cache *build.Cache, ports []int) error {
	next := func() int { p := ports[0]; ports = ports[1:]; return p }
	etcd := c.describeEtcd(next(), next())
	members := []*member{etcd}
	var urls []string
	for i := range c.options.APIServers {
		server := c.describeAPIServer(i, next(), etcd.url)
		members, urls = append(members, server), append(urls, server.url)
	}
	if err := c.writeKubeconfigs(urls); err != nil {
		return err
	}
	for component, describe := range map[Component]func(port int, server string) (*member, error){
		ControllerManager: c.describeControllerManager,
		Scheduler:         c.describeScheduler,
		Nodes: func(port int, _ string) (*member, error) {
			return c.describeNodes(port, cache.StagesPath(c.options.binary(Nodes)))
		},
	} {
		if !c.options.has(component) {
			continue
		}
		m, err := describe(next(), urls[0])
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	for _, m := range members {
		c.complete(m, cache)
	}
	slices.SortStableFunc(members, func(a, b *member) int {
		order := AllComponents()
		return slices.Index(order, a.component) - slices.Index(order, b.component)
	})
	c.members = members
	return nil
}

// complete fills in what all members have alike.
func (c *Cluster) complete(m *member, cache *build.Cache) {
	if m.name == "" {
		m.name = string(m.component)
	}
	binary := c.options.binary(m.component)
	m.version, m.path = binary.Version, cache.Path(binary)
	m.log = filepath.Join(c.Dir, "logs", m.name+".log")
	m.args = append(m.args, c.options.ExtraArgs[m.component]...)
	if binary.Staging {
		m.gates = make(map[string]bool, len(c.options.FeatureGates))
		for gate, on := range c.options.FeatureGates {
			m.gates[gate] = on
		}
	}
}

func (c *Cluster) httpsProbe(url string) func(context.Context) error {
	return func(ctx context.Context) error { return get(ctx, c.client, url, nil) }
}

func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// keyValues is "a=1,b=2", sorted.
func keyValues(pairs iter.Seq2[string, string]) string {
	var all []string
	for key, value := range pairs {
		all = append(all, key+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
