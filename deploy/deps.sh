#!/bin/sh
# Installs the servers that the tests start. Where it cannot, it says what to
# install and fails. When all are on PATH it does nothing.
set -eu

missing='' debian='' homebrew=''
while read -r binary package formula; do
	command -v "$binary" >/dev/null && continue
	missing="$missing $binary" debian="$debian $package" homebrew="$homebrew $formula"
done <<END
redis-server redis-server redis
END
[ -n "$missing" ] || exit 0

root=
[ "$(id -u)" = 0 ] || root='sudo -n'
if ! command -v apt-get >/dev/null || ! $root true 2>/dev/null; then
	echo "Not installed, and needed by the tests:$missing" >&2
	echo "  Debian, Ubuntu: sudo apt-get install$debian" >&2
	echo "  macOS: brew install$homebrew" >&2
	exit 1
fi

# Debian starts a server as soon as it is installed. The tests start their own,
# so unless this machine has a policy already, one that forbids it stands until
# the installation is over. RUNLEVEL=1, often advised instead, has no effect
# under systemd. From the next boot on the service runs, unless it is disabled:
# systemctl disable redis-server.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap '$root rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
	$root chmod 755 "$policy"
fi

echo "Installing$debian"
apt='env DEBIAN_FRONTEND=noninteractive apt-get --quiet --option Acquire::Retries=3 --option DPkg::Lock::Timeout=120'
$root $apt update </dev/null
$root $apt install --yes --no-install-recommends $debian </dev/null
