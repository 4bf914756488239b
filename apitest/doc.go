// Package apitest provides a Kubernetes API server for tests, in the manner of net/http/httptest: it runs inside the test's
// process, is ready within a millisecond, and keeps the API's rules for any kind, custom resources included.
//
//	server := apitest.NewServer(t, &apitest.Options{Objects: definitions, Controllers: apitest.AllControllers})
//	go run(ctx, server.Client()) // the controller under test; Kubeconfig, Config and HTTPClient are for other clients
//	…
//	server.AssertRequests(t, 1, apitest.OfResource("widgets.example.com/status"), apitest.Succeeded)
//
// [Options] has users and RBAC, admission functions, simulated controllers, and functions that answer exec, logs and
// port-forward. [Server.Inject] makes requests fail, [Server.Restart], [Server.Disconnect] and [Server.Compact] interrupt
// clients, and [Server.Clock] changes the time. [Server.Requests] and [Server.StatesOf] return what happened. Package simulate
// runs a controller many times under random faults. docs/APITEST.md says what the server does not do.
package apitest
