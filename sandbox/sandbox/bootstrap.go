//go:build unix

package sandbox

import "context"

// bootstrap creates what every sandbox has: the rights of the user "limited", and
// the nodes.
func (c *Cluster) bootstrap(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	// Role and binding need the namespace, which the API server makes on its own.
	if err := poll(ctx, c.done, c.httpsProbe(c.serverURL()+"/api/v1/namespaces/default")); err != nil {
		return c.becauseOf(err, "waiting for namespace default")
	}
	const group, path = "rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	metadata := map[string]string{"name": "limited", "namespace": "default"}
	err := c.create(ctx, path+"roles", map[string]any{
		"apiVersion": group + "/v1", "kind": "Role", "metadata": metadata,
		"rules": []map[string][]string{{"apiGroups": {""}, "resources": {"configmaps"}, "verbs": {"get", "list", "watch"}}},
	})
	if err != nil {
		return err
	}
	err = c.create(ctx, path+"rolebindings", map[string]any{
		"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": metadata,
		"roleRef":  map[string]string{"apiGroup": group, "kind": "Role", "name": "limited"},
		"subjects": []map[string]string{{"apiGroup": group, "kind": "User", "name": "limited"}},
	})
	if err != nil || !c.options.has(Nodes) {
		return err
	}
	return c.createNodes(ctx)
}

// waitUsable waits for what components do after they are ready: pods can be
// created once the default service account exists, and run once nodes are ready.
func (c *Cluster) waitUsable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errNotReady)
	defer cancel()
	if c.options.has(ControllerManager) {
		if err := poll(ctx, c.done, c.httpsProbe(c.serverURL()+"/api/v1/namespaces/default/serviceaccounts/default")); err != nil {
			return c.becauseOf(err, "waiting for the default service account")
		}
	}
	if c.options.has(Nodes) {
		for i := range c.options.Nodes {
			if err := poll(ctx, c.done, c.nodeReady(i)); err != nil {
				return c.becauseOf(err, "waiting for the nodes")
			}
		}
	}
	return nil
}
