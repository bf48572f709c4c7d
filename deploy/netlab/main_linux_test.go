package netlab_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"sagabench/deploy/netlab"
)

// childVariable makes this test binary a program for the hosts of a lab, or one that makes
// a lab.
const childVariable = "SAGABENCH_NETLAB_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "dial":
		dial(os.Args[1])
	case "listen":
		l, err := net.Listen("tcp", os.Args[1])
		fmt.Println("listening", err)
		for err == nil { // until the test ends
			_, err = l.Accept()
		}
	case "lab":
		makeLab(os.Args[1])
	}
}

// dial prints how long a connection took, and how that ended.
func dial(addr string) {
	began := time.Now()
	_, err := net.DialTimeout("tcp", addr, 20*time.Second)
	fmt.Printf("%d %v", time.Since(began).Nanoseconds(), err)
}

// makeLab makes a lab with processes on a host that outlive the one that started them. It
// prints the ids of the first processes of the hosts, and waits to be killed.
func makeLab(mark string) {
	lab, err := netlab.Start(netlab.DefaultConfig())
	if err == nil {
		err = lab.Host("app1").Start(exec.Command("sh", "-c", `setsid sh -c 'sleep 600 & wait' `+mark+` & exit`))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, h := range lab.Hosts() {
		fmt.Print(h.PID(), " ")
	}
	fmt.Println()
	select {}
}
