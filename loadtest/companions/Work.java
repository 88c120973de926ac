/* Computes for WORK_US microseconds, as a page of the seven does with --work. A virtual thread has no clock of its
 * CPU time, so the first page finds out how many checksums take so long. */
import java.util.zip.CRC32;

class Work {
    static final int FEW = 100;
    static final byte[] BLOCK = new byte[1 << 16];
    static final long ROUNDS = measured(Long.parseLong(System.getenv().getOrDefault("WORK_US", "0")));

    static long measured(long us) {
        long least = Long.MAX_VALUE;
        for (int attempt = 0; us > 0 && attempt < 50; attempt++) { // the fastest one has not been interrupted
            long begin = System.nanoTime();
            checksums(FEW);
            least = Math.min(least, System.nanoTime() - begin);
        }
        return us * 1000 * FEW / least;
    }

    static void checksums(long rounds) {
        CRC32 sum = new CRC32();
        for (long round = 0; round < rounds; round++) sum.update(BLOCK);
    }

    static void compute() {
        checksums(ROUNDS);
    }
}
